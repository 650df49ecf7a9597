// dlopen under the library: what is bound deeply shares the program's malloc, and everything else is as libc has
// it, who the caller is above all.
//   opening DIRECTORY share|drop|keep     what NUMALLOC_DEEPBIND says; DIRECTORY has libsurvive_caller.so, whose
//                                         RUNPATH is $ORIGIN/hidden
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <threads.h>
#include <wordexp.h>

#include <cstdio>
#include <string>

#include "check.h"

namespace {

std::string directory;

template <class F>
F function(void* library, const char* name) {
    void* f = dlsym(library, name);
    CHECK(f != nullptr);
    return reinterpret_cast<F>(f);
}

void* (*allocate_in(void* library))(std::size_t) { return function<void* (*)(std::size_t)>(library, "opened_malloc"); }
void (*free_in(void* library))(void*) { return function<void (*)(void*)>(library, "opened_free"); }
void* (*open_in(void* library))(const char*, int) {
    return function<void* (*)(const char*, int)>(library, "opened_open");
}

Lmid_t name_space_of(void* library) {
    Lmid_t id = -1;
    CHECK(dlinfo(library, RTLD_DI_LMID, &id) == 0);
    return id;
}

// Each side frees what the other one allocated.
void exchange(void* library) {
    CHECK(library != nullptr);
    for (std::size_t n : {1, 100, 5000, 100000, 5000000}) {
        free(allocate_in(library)(n));
        free_in(library)(malloc(n));
        free_in(library)(realloc(allocate_in(library)(n), 2 * n));
    }
}

// What a program looks up in libc, or in a library that depends on it, is the program's malloc.
void handles_lead_to_the_programs_malloc() {
#if defined(__x86_64__)
    for (const char* name : {"libc.so.6", "libm.so.6"}) {
        void* library = dlopen(name, RTLD_NOW);
        CHECK(library != nullptr);
        for (const char* symbol : {"malloc", "calloc", "realloc", "free", "posix_memalign", "malloc_usable_size"})
            CHECK(dlsym(library, symbol) == dlsym(RTLD_DEFAULT, symbol));
        const auto its_free = function<void (*)(void*)>(library, "free");
        its_free(function<char* (*)(const char*)>(library, "strdup")("text"));
        its_free(std::malloc(100));
        std::free(function<void* (*)(std::size_t)>(library, "malloc")(100));
        CHECK(dlclose(library) == 0);
    }
#endif
}

void deep_libraries_share_malloc(bool own_operator) {
    const std::string hidden = directory + "/hidden/libsurvive_hidden.so";
    void* library = dlopen(hidden.c_str(), RTLD_NOW | RTLD_DEEPBIND);
    exchange(library);
    // Where libc's symbols lie beside code, sharing is to drop the flag.
    const int used = function<int (*)()>(library, "opened_uses_own_operator")();
#if defined(__x86_64__)
    CHECK(used == (own_operator ? 1 : 0));
#else
    CHECK(used == 0 || own_operator);
#endif
    CHECK(dlclose(library) == 0);
    library = dlmopen(LM_ID_BASE, hidden.c_str(), RTLD_LAZY | RTLD_DEEPBIND);
    exchange(library);
    CHECK(dlclose(library) == 0);
}

// RUNPATH and $ORIGIN are those of the library that calls.
void callers_are_kept(void* caller, Lmid_t id) {
    CHECK(caller != nullptr);
    for (const char* name : {"libsurvive_hidden.so", "$ORIGIN/hidden/libsurvive_hidden.so"})
        for (int deep : {0, RTLD_DEEPBIND}) {
            CHECK(dlopen(name, RTLD_NOW | deep) == nullptr);  // not the program's
            void* hidden = open_in(caller)(name, RTLD_NOW | deep);
            if (hidden == nullptr) std::fprintf(stderr, "%s: %s\n", name, dlerror());
            CHECK(hidden != nullptr && name_space_of(hidden) == id);
            if (id == LM_ID_BASE) exchange(hidden);
            free_in(hidden)(allocate_in(hidden)(100));
            CHECK(dlclose(hidden) == 0);
        }
}

void the_program_itself() {
    for (int deep : {0, RTLD_DEEPBIND}) {
        void* self = dlopen(nullptr, RTLD_NOW | deep);
        CHECK(self != nullptr && dlsym(self, "malloc") == dlsym(RTLD_DEFAULT, "malloc"));
        CHECK(dlclose(self) == 0);
    }
}

void error_is(const char* wanted) {
    const char* said = dlerror();
    if (said == nullptr || std::strcmp(said, wanted) != 0)
        std::fprintf(stderr, "%s\n", said == nullptr ? "nothing" : said);
    CHECK(said != nullptr && std::strcmp(said, wanted) == 0);
    CHECK(dlerror() == nullptr);
}

void errors_are_libcs() {
    for (int deep : {0, RTLD_DEEPBIND}) {
        CHECK(dlopen("/nowhere/libx.so", RTLD_NOW | deep) == nullptr);
        error_is("/nowhere/libx.so: cannot open shared object file: No such file or directory");
        CHECK(dlopen("/nowhere/libx.so", deep) == nullptr);
        error_is("/nowhere/libx.so: invalid mode for dlopen(): Invalid argument");
        CHECK(dlmopen(LM_ID_BASE, "/nowhere/libx.so", RTLD_NOW | deep) == nullptr);
        error_is("/nowhere/libx.so: cannot open shared object file: No such file or directory");
    }
}

// The first call of each function that is interposed: to look up the next one may not clear the message.
template <class Call>
void keeps_message(Call call) {
    CHECK(dlopen("/no/such/library.so", RTLD_NOW) == nullptr);
    call();
    CHECK(dlerror() != nullptr);
}

void messages_outlast_other_calls() {
    char word[] = "true";
    char* const words[] = {word, nullptr};
    pid_t child = -1;
    const auto wait = [&] {
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    };
    pthread_t thread;
    thrd_t c_thread;
    pthread_attr_t attr;
    cpu_set_t cpus;
    wordexp_t expanded;
    keeps_message([&] { CHECK(pthread_create(&thread, nullptr, [](void* p) { return p; }, nullptr) == 0); });
    CHECK(pthread_join(thread, nullptr) == 0);
    keeps_message([&] { CHECK(thrd_create(&c_thread, [](void*) { return 0; }, nullptr) == thrd_success); });
    CHECK(thrd_join(c_thread, nullptr) == thrd_success);
    keeps_message([&] { CHECK(pthread_getattr_np(pthread_self(), &attr) == 0); });
    CHECK(pthread_attr_destroy(&attr) == 0 && pthread_attr_init(&attr) == 0);
    keeps_message([&] { CHECK(pthread_setattr_default_np(&attr) == 0); });
    CHECK(pthread_attr_destroy(&attr) == 0);
    keeps_message([&] { CHECK(pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus) == 0); });
    keeps_message([&] { CHECK(pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus) == 0); });
    keeps_message([&] { CHECK(system("true") == 0); });
    keeps_message([&] { CHECK(pclose(popen("true", "r")) == 0); });
    keeps_message([&] { CHECK(wordexp("a b", &expanded, 0) == 0); });
    wordfree(&expanded);
    char shell[] = "sh", option[] = "-c";
    char* const line[] = {shell, option, word, nullptr};
    keeps_message([&] { CHECK(posix_spawn(&child, "/bin/sh", nullptr, nullptr, line, environ) == 0); });
    wait();
    keeps_message([&] { CHECK(posix_spawnp(&child, "true", nullptr, nullptr, words, environ) == 0); });
    wait();
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    CHECK(argc == 3);
    messages_outlast_other_calls();
    directory = argv[1];
    if (std::strcmp(argv[2], "keep") == 0) {
        // Deeply bound after all: its malloc is libc's, and it must free its own.
        void* library = dlopen((directory + "/hidden/libsurvive_hidden.so").c_str(), RTLD_NOW | RTLD_DEEPBIND);
        CHECK(library != nullptr);
        Dl_info info{};
        void* p = allocate_in(library)(100);
        CHECK(p != nullptr && dladdr(function<void* (*)()>(library, "opened_which_malloc")(), &info) != 0);
        free_in(library)(p);
        const char* name = std::strrchr(info.dli_fname, '/');
        CHECK(name != nullptr && std::strncmp(name, "/libc.", 6) == 0);
        std::puts("opened");
        return 0;
    }
    const bool shares = std::strcmp(argv[2], "share") == 0;
    if (shares) handles_lead_to_the_programs_malloc();
    deep_libraries_share_malloc(shares);
    const std::string caller = directory + "/libsurvive_caller.so";
    callers_are_kept(dlopen(caller.c_str(), RTLD_NOW), LM_ID_BASE);
    void* elsewhere = dlmopen(LM_ID_NEWLM, caller.c_str(), RTLD_NOW);
    CHECK(elsewhere != nullptr);
    callers_are_kept(elsewhere, name_space_of(elsewhere));
    the_program_itself();
    errors_are_libcs();
    std::puts("opened");
}

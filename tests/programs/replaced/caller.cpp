// Calls every form of operator new and delete, and some of what the C++ library does with them, and prints which of
// the functions in operators.cpp each of them came through. The output is compared with that of the same
// program without our library.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

namespace {

// Filled between begin() and end() by the functions in operators.cpp; nothing here allocates.
char trace[4096];
bool tracing = false;
enum class Refusal { none, bad_alloc, number } refusal = Refusal::none;

void begin() {
    trace[0] = '\0';
    tracing = true;
}
void say(const char* what) {
    tracing = false;
    std::printf("%s:%s\n", what, trace);
}

struct OwnError : std::bad_alloc {};

}  // namespace

extern "C" void note(const char* name) {
    if (!tracing || std::strlen(trace) + std::strlen(name) + 2 > sizeof(trace)) return;
    std::strcat(trace, " ");
    std::strcat(trace, name);
}

extern "C" bool refuse(bool throws) {
    const Refusal now = tracing ? refusal : Refusal::none;
    if (throws && now == Refusal::bad_alloc) throw OwnError();
    if (throws && now == Refusal::number) throw 5;
    return now != Refusal::none;
}

namespace {

constexpr std::align_val_t al{64};
constexpr std::size_t sizes[] = {40, 5000, 100000};

struct Pair {
    const char* name;
    void* (*make)(std::size_t n);
    void (*drop)(void* p, std::size_t n);
};
const Pair pairs[] = {
    {"new, delete", [](std::size_t n) { return ::operator new(n); },
     [](void* p, std::size_t) { ::operator delete(p); }},
    {"new, sized", [](std::size_t n) { return ::operator new(n); },
     [](void* p, std::size_t n) { ::operator delete(p, n); }},
    {"nothrow, delete", [](std::size_t n) { return ::operator new(n, std::nothrow); },
     [](void* p, std::size_t) { ::operator delete(p); }},
    {"nothrow, nothrow", [](std::size_t n) { return ::operator new(n, std::nothrow); },
     [](void* p, std::size_t) { ::operator delete(p, std::nothrow); }},
    {"array, delete", [](std::size_t n) { return ::operator new[](n); },
     [](void* p, std::size_t) { ::operator delete[](p); }},
    {"array, sized", [](std::size_t n) { return ::operator new[](n); },
     [](void* p, std::size_t n) { ::operator delete[](p, n); }},
    {"array nothrow, nothrow", [](std::size_t n) { return ::operator new[](n, std::nothrow); },
     [](void* p, std::size_t) { ::operator delete[](p, std::nothrow); }},
    {"aligned, delete", [](std::size_t n) { return ::operator new(n, al); },
     [](void* p, std::size_t) { ::operator delete(p, al); }},
    {"aligned, sized", [](std::size_t n) { return ::operator new(n, al); },
     [](void* p, std::size_t n) { ::operator delete(p, n, al); }},
    {"aligned nothrow, nothrow", [](std::size_t n) { return ::operator new(n, al, std::nothrow); },
     [](void* p, std::size_t) { ::operator delete(p, al, std::nothrow); }},
    {"aligned array, delete", [](std::size_t n) { return ::operator new[](n, al); },
     [](void* p, std::size_t) { ::operator delete[](p, al); }},
    {"aligned array, sized", [](std::size_t n) { return ::operator new[](n, al); },
     [](void* p, std::size_t n) { ::operator delete[](p, n, al); }},
    {"aligned array nothrow, nothrow", [](std::size_t n) { return ::operator new[](n, al, std::nothrow); },
     [](void* p, std::size_t) { ::operator delete[](p, al, std::nothrow); }},
};

void call_all_pairs() {
    for (const Pair& pair : pairs) {
        for (std::size_t n : sizes) {
            std::printf("%zu ", n);
            begin();
            void* p = pair.make(n);
            note("|");
            std::memset(p, 1, n);
            pair.drop(p, n);
            pair.drop(nullptr, n);
            say(pair.name);
        }
    }
}

// Often enough that a new thread's frees are no longer checked one by one.
void call_often() {
    for (const Pair& pair : pairs)
        for (int i = 0; i < 400; ++i) pair.drop(pair.make(40), 40);
}

void call_refused() {
    for (const Refusal how : {Refusal::bad_alloc, Refusal::number}) {
        for (const Pair& pair : pairs) {
            refusal = how;
            begin();
            try {
                void* p = pair.make(40);
                refusal = Refusal::none;
                note(p == nullptr ? "null" : "gave");
                pair.drop(p, 40);
            } catch (const std::bad_alloc&) {
                note("bad_alloc");
            } catch (int) {
                note("number");
            }
            refusal = Refusal::none;
            say(pair.name);
        }
    }
}

int handler_calls;
void call_with_handler() {
    for (const Pair& pair : pairs) {
        handler_calls = 0;
        std::set_new_handler([] {
            if (++handler_calls == 3) std::set_new_handler(nullptr);
        });
        refusal = Refusal::bad_alloc;
        begin();
        try {
            void* p = pair.make(40);
            refusal = Refusal::none;
            note(p == nullptr ? "null" : "gave");
            pair.drop(p, 40);
        } catch (const std::bad_alloc&) {
            note("bad_alloc");
        }
        refusal = Refusal::none;
        say(pair.name);
        std::printf("handler called %d times\n", handler_calls);
        std::set_new_handler(nullptr);
    }
}

struct alignas(128) Wide {
    char bytes[200];
};

void call_library() {
    begin();
    {
        std::vector<int> v(1000);
        for (int i = 0; i < 1000; ++i) v[static_cast<std::size_t>(i)] = i * 7919 % 1000;
        std::stable_sort(v.begin(), v.end());
    }
    say("stable_sort");
    begin();
    delete new Wide;
    delete[] new Wide[3];
    say("aligned types");
    begin();
    {
        std::pmr::monotonic_buffer_resource monotonic(std::pmr::new_delete_resource());
        std::pmr::vector<std::pmr::string> texts(&monotonic);
        for (int i = 0; i < 100; ++i) texts.emplace_back("a text that is too long for the object itself");
        std::pmr::unsynchronized_pool_resource pools(std::pmr::new_delete_resource());
        (void)pools.allocate(100, 64);
    }
    say("pmr");
    begin();
    try {
        throw std::string(100, 'a');
    } catch (const std::string& text) {
        note(text.size() == 100 ? "caught" : "lost");
    }
    say("exception");
}

void* call_everything(void*) {
    call_all_pairs();
    call_often();
    call_all_pairs();
    call_refused();
    call_with_handler();
    call_library();
    return nullptr;
}

}  // namespace

extern "C" int run_all() {
    static char buffer[1 << 16];
    std::setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    call_everything(nullptr);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, call_everything, nullptr) != 0) return 1;
    pthread_join(thread, nullptr);
    std::fflush(stdout);
    return 0;
}

#if !defined(PLUGIN)
int main() { return run_all(); }
#endif

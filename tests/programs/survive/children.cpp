// vfork and exec, posix_spawn, system, popen, fork and exec, exit in a fork's child: from main and
// from threads, while other threads allocate. The children run with the library too.
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

extern char** environ;

namespace {

std::atomic<bool> stop{false};

void allocate_meanwhile() {
    testing_support::Random random(5);
    std::vector<void*> own(100);
    while (!stop.load()) {
        void*& p = own[random.below(own.size())];
        free(p);
        p = malloc(random.below(random.below(10) ? 500 : 100000));
    }
    for (void* p : own) free(p);
}

int wait_status(pid_t pid) {
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

void by_vfork(int code) {
    char text[32];
    std::snprintf(text, sizeof text, "exit %d", code);
    char* const arguments[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), text, nullptr};
    const pid_t pid = vfork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execve("/bin/sh", arguments, environ);
        _exit(127);
    }
    const int status = wait_status(pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

// A vfork whose exec fails returns to the parent's memory untouched.
void by_vfork_without_exec() {
    char* const arguments[] = {nullptr};
    const pid_t pid = vfork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execve("/nonexistent/program", arguments, environ);
        _exit(44);
    }
    const int status = wait_status(pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 44);
}

void by_spawn() {
    char* const arguments[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>("exit 9"), nullptr};
    pid_t pid = -1;
    CHECK(posix_spawn(&pid, "/bin/sh", nullptr, nullptr, arguments, environ) == 0);
    const int status = wait_status(pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

void by_system() {
    const int status = system("test -n \"$PATH\" && exit 3");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

std::string output_of(const char* command) {
    FILE* pipe = popen(command, "r");
    CHECK(pipe != nullptr);
    std::string text;
    char piece[256];
    while (fgets(piece, sizeof piece, pipe) != nullptr) text += piece;
    CHECK(pclose(pipe) == 0);
    return text;
}

void by_popen() {
    CHECK(output_of("i=0; while [ $i -lt 5 ]; do echo $i; i=$((i+1)); done") == "0\n1\n2\n3\n4\n");
    // A child sees the processors that its parent was given, whatever thread it comes from.
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    CHECK(output_of("env -u OMP_NUM_THREADS nproc") == std::to_string(CPU_COUNT(&set)) + "\n");
}

// exit, not _exit: the child runs the exit handlers and destructors.
void by_fork_and_exit() {
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        free(malloc(100000));
        exit(6);
    }
    const int status = wait_status(pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6);
}

void all(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        by_vfork(i % 100);
        by_vfork_without_exec();
        by_spawn();
        by_system();
        by_popen();
        by_fork_and_exit();
    }
}

}  // namespace

int main() {
    testing_support::require_library();
    alarm(550);
    all(3);  // before there is any thread
    std::thread busy[2] = {std::thread(allocate_meanwhile), std::thread(allocate_meanwhile)};
    std::thread others[3] = {std::thread(all, 12), std::thread(all, 12), std::thread(all, 12)};
    all(12);
    for (std::thread& t : others) t.join();
    stop = true;
    for (std::thread& t : busy) t.join();
    if (!testing_support::any_allocator()) CHECK(output_of("grep -c libnumalloc /proc/self/maps") != "0\n");
    std::puts("all children did what they should");
}

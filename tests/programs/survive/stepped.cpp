// A signal at each instruction of the allocator: a program is stepped through mallocs and frees, those that take locks
// among them, and the first time that it comes to an instruction of the library it gets a signal whose handler forks.
// The fork's handlers take all locks, some of which the thread holds at that very instruction. The child ends at once,
// which is all that POSIX allows it. The line at the end: how many steps it was, and forks.
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cinttypes>
#include <csignal>
#include <unordered_set>

#include "check.h"

namespace {

// The tracer waits for the trap.
void handler(int) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    __asm__ volatile("int3");
}

// Lists that run dry and overflow, large objects that come from bags, big ones that come and go, sizes that change.
void work() {
    constexpr int count = 300;
    static unsigned char* held[count];
    for (const std::size_t n : {32UL, 1000UL, 9000UL, 100000UL}) {
        const int some = n > 2000 ? 12 : count;
        for (int i = 0; i < some; ++i) {
            held[i] = static_cast<unsigned char*>(malloc(n));
            held[i][0] = held[i][n - 1] = static_cast<unsigned char>(i);
        }
        for (int i = 0; i < some; ++i) {
            CHECK(held[i][0] == static_cast<unsigned char>(i) && held[i][n - 1] == static_cast<unsigned char>(i));
            free(held[i]);
        }
    }
    for (const std::size_t n : {3UL << 20, 1UL << 20}) {
        // Big objects, but as small as they can be: each byte that is cleared or copied may be a step.
        auto* p = static_cast<unsigned char*>(realloc(calloc(1, 1000), 520 << 10));
        CHECK(p[999] == 0);
        p[12345] = 7;
        p = static_cast<unsigned char*>(realloc(p, n));
        CHECK(p[12345] == 7);
        free(p);
    }
    CHECK(posix_memalign(reinterpret_cast<void**>(&held[0]), 65536, 200000) == 0);
    free(held[0]);
}

int traced() {
    testing_support::require_library();
    struct sigaction action{};
    action.sa_handler = handler;
    CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
    CHECK(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0);
    raise(SIGSTOP);
    work();
    raise(SIGSTOP);
    return 0;
}

struct Range {
    std::uint64_t begin = 0, end = 0;
};
Range library_of(pid_t process) {
    char name[64], line[512];
    std::snprintf(name, sizeof name, "/proc/%d/maps", process);
    std::FILE* const maps = std::fopen(name, "r");
    CHECK(maps != nullptr);
    const char* const library = testing_support::any_allocator() ? "libc.so" : "libnumalloc";
    Range range;
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        char rights[8];
        Range one;
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &one.begin, &one.end, rights) != 3) continue;
        if (std::strstr(line, library) != nullptr && rights[2] == 'x') range = one;
    }
    std::fclose(maps);
    return range;
}

int wait_for(pid_t process) {
    int status;
    CHECK(waitpid(process, &status, 0) == process);
    if (!WIFSTOPPED(status)) {
        std::fprintf(stderr, "the stepped program ended: status %d, signal %d\n", WEXITSTATUS(status),
                     WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        _exit(1);
    }
    return WSTOPSIG(status);
}

}  // namespace

int main() {
    const pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) return traced();
    CHECK(wait_for(process) == SIGSTOP);
    const Range library = library_of(process);
    CHECK(library.end != 0);
    std::unordered_set<std::uint64_t> struck;
    long steps = 0;
    for (;; ++steps) {
        CHECK(ptrace(PTRACE_SINGLESTEP, process, nullptr, nullptr) == 0);
        const int signal = wait_for(process);
        if (signal == SIGSTOP) break;
        CHECK(signal == SIGTRAP);
        user_regs_struct registers;
        CHECK(ptrace(PTRACE_GETREGS, process, nullptr, &registers) == 0);
        if (registers.rip < library.begin || registers.rip >= library.end) continue;
        if (!struck.insert(registers.rip).second) continue;
        CHECK(ptrace(PTRACE_CONT, process, nullptr, reinterpret_cast<void*>(SIGUSR1)) == 0);
        int stopped_by = wait_for(process);
        for (; stopped_by == SIGCHLD; stopped_by = wait_for(process))
            CHECK(ptrace(PTRACE_CONT, process, nullptr, nullptr) == 0);
        CHECK(stopped_by == SIGTRAP);
    }
    CHECK(ptrace(PTRACE_CONT, process, nullptr, nullptr) == 0);
    int status;
    CHECK(waitpid(process, &status, 0) == process);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    std::printf("%ld steps, %zu of them interrupted by a fork\n", steps, struck.size());
    CHECK(struck.size() > 1000);
    return 0;
}

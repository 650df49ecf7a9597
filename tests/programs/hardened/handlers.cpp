// A program's own handler of SIGSEGV runs as it asked for it, though the library explains faults: once, with the
// signals that it wants blocked, on the stack that it wants. After a filter the library installs no handler.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <initializer_list>

#include "check.h"

namespace {

constexpr std::size_t big = std::size_t{3} << 20;

// The library installs its handler at the first of these.
void free_a_big_block() {
    char* const p = static_cast<char*>(malloc(big));
    CHECK(p != nullptr);
    p[0] = 1;
    free(p);
}

void fault() { *static_cast<volatile char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) = 1; }

void install(void (*handler)(int), int flags, int blocked = 0) {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    if (blocked != 0) sigaddset(&action.sa_mask, blocked);
    CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
    free_a_big_block();
}

// The status of a child that does `work` and then exits with 7.
int status_of(void (*work)()) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const rlimit no_core{};
        setrlimit(RLIMIT_CORE, &no_core);
        work();
        _exit(7);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

volatile int* calls;  // shared with the children

void count(int) {
    *calls = *calls + 1;
    if (*calls == 5) _exit(5);
}
void once() {
    install(count, SA_RESETHAND);
    fault();
}

std::jmp_buf before;
void leave(int) { std::longjmp(before, 1); }
void three_times() {
    install(leave, SA_NODEFER);
    static int left = 3;
    (void)setjmp(before);
    if (left-- > 0) fault();
}

void exit_if_blocked(int) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, nullptr, &now);
    _exit(sigismember(&now, SIGUSR1) == 1 ? 7 : 6);
}
void with_another_blocked() {
    install(exit_if_blocked, 0, SIGUSR1);
    fault();
}

alignas(16) char other_stack[64 * 1024];
void exit_if_on_other_stack(int) {
    const char here = 0;
    _exit(&here >= other_stack && &here < other_stack + sizeof other_stack ? 7 : 6);
}
void use_other_stack() {
    stack_t stack{};
    stack.ss_sp = other_stack;
    stack.ss_size = sizeof other_stack;
    CHECK(sigaltstack(&stack, nullptr) == 0);
}
void on_the_other_stack() {
    use_other_stack();
    install(exit_if_on_other_stack, SA_ONSTACK);
    fault();
}
void on_the_threads_stack() {
    use_other_stack();
    install(exit_if_on_other_stack, 0);
    fault();
}

bool kill_for_sigaction() {
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog filter{};
    filter.len = sizeof code / sizeof *code;
    filter.filter = code;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void after_a_filter() {
    if (kill_for_sigaction()) free_a_big_block();
}

// The report is on stderr, where the test expects none.
void use_after_free() {
    CHECK(std::freopen("/dev/null", "w", stderr) != nullptr);
    auto* const p = static_cast<volatile char*>(malloc(big));
    free(const_cast<char*>(p));
    kill_for_sigaction();
    p[1000] = 1;
}

}  // namespace

int main() {
    testing_support::require_library();
    calls = static_cast<volatile int*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK(calls != MAP_FAILED);
    for (void (*work)() : {once, use_after_free}) {
        const int status = status_of(work);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
    CHECK(*calls == 1);
    for (void (*work)() : {three_times, with_another_blocked, on_the_other_stack, after_a_filter}) {
        const int status = status_of(work);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    const int status = status_of(on_the_threads_stack);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    std::puts("done");
}

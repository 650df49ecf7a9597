// A program that filters its own system calls.
//
//   prctl, syscall     kills at all but what malloc and free need at least (src/os/filter.h) and what libc needs for
//                      threads and fork. Installed by that function before the first malloc.
//   alone              kills for futex. The program has one thread, and forks.
//   EINVAL, EPERM, EACCES, ENOSYS, kill      refuses MAP_FIXED_NOREPLACE with that error, or kills for it, from the
//                      first malloc on or from the second
//   handler            a signal handler asks whether there are filters, in the middle of malloc and free
//   counter            the processor's counter is out of bounds (PR_SET_TSC)
//   dlopen             kills for mprotect; libc and the program are opened, for which libc needs none
//   execveat           it is refused as on a kernel without it; fexecve() goes by /proc
//   signal             after a filter that allows all: SIGTERM ends the process
#define _GNU_SOURCE
#include "c_filter.h"
#include "c_work.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

static void install(struct sock_filter* filter, size_t length, int by_syscall) {
    const struct sock_fprog program = {(unsigned short)length, filter};
    const int refused = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                        (by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0
                                    : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0);
    if (!refused) return;
    dprintf(1, "no filters here\n");
    _exit(77);
}

static void allow_only_what_is_needed(int by_syscall) {
    static const int allowed[] = {
        SYS_mmap,       SYS_munmap,          SYS_mremap, SYS_mprotect,       SYS_futex,        SYS_clone,
        SYS_clone3,     SYS_set_robust_list, SYS_rseq,   SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_exit,
        SYS_exit_group, SYS_wait4,           SYS_write,  SYS_execve,
    };
    enum { n = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[2 * n + 9];
    size_t length = 0;
    filter[length++] = (struct sock_filter)LOAD(nr);
    for (int i = 0; i < n; ++i) {
        filter[length++] = (struct sock_filter)IF_EQUAL((unsigned)allowed[i], 0, 1);
        filter[length++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    }
    filter[length++] = (struct sock_filter)IF_EQUAL(SYS_madvise, 0, 3);
    filter[length++] = (struct sock_filter)LOW(2);
    filter[length++] = (struct sock_filter)IF_EQUAL(MADV_DONTNEED, 2, 0);
    // libc's, for stacks, from 2.42 on: MADV_GUARD_INSTALL.
    filter[length++] = (struct sock_filter)IF_EQUAL(102, 1, 0);
    filter[length++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
    filter[length++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    install(filter, length, by_syscall);
}

static void refuse_fixed_places(int error) {
    struct sock_filter filter[] = {
        LOAD(nr),
        IF_EQUAL(SYS_mmap, 1, 0),
        RETURN(SECCOMP_RET_ALLOW),
        LOW(3),
        IF_BITS(MAP_FIXED_NOREPLACE, 1, 0),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(error == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | (unsigned)error),
    };
    install(filter, sizeof filter / sizeof *filter, 0);
}

static void forbid(unsigned call) {
    struct sock_filter filter[] = {
        LOAD(nr),
        IF_EQUAL(call, 0, 1),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        RETURN(SECCOMP_RET_ALLOW),
    };
    install(filter, sizeof filter / sizeof *filter, 0);
}

static void refuse_execveat(void) {
    struct sock_filter filter[] = {
        LOAD(nr),
        IF_EQUAL(SYS_execveat, 0, 1),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS),
        RETURN(SECCOMP_RET_ALLOW),
    };
    install(filter, sizeof filter / sizeof *filter, 0);
}

static void execute_open_file(void) {
    char* const words[] = {(char*)"true", NULL};
    const pid_t child = fork();
    if (child == 0) {
        fexecve(open("/bin/true", O_RDONLY | O_CLOEXEC), words, environ);
        _exit(1);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(fexecve(9999, words, environ) == -1 && errno == ENOENT);
}

// Long enough for what the heap does seldom.
static void work_repeatedly(void) {
    for (int i = 0; i < 4; ++i) {
        work_all();
        rounds = 10;
    }
}

static void ask_for_filters(int signal) {
    (void)signal;
    const int kept = errno;
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT);
    errno = kept;
}
static void be_interrupted(void) {
    const struct sigaction action = {.sa_handler = ask_for_filters, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    uintptr_t* kept[64] = {NULL};
    for (uintptr_t i = 0; i < 5000000; ++i) {
        uintptr_t** p = &kept[i % 64];
        if (*p != NULL) CHECK(**p == i - 64);
        free(*p);
        CHECK((*p = malloc(8)) != NULL);
        **p = i;
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

static void fork_once(void) {
    const pid_t child = fork();
    if (child == 0) {
        rounds = 3;
        work((void*)7);
        _exit(0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

// 0: the filter kills.
static int error_named(const char* name) {
    static const struct {
        const char* name;
        int error;
    } known[] = {{"EINVAL", EINVAL}, {"EPERM", EPERM}, {"EACCES", EACCES}, {"ENOSYS", ENOSYS}, {"kill", 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if (strcmp(name, known[i].name) == 0) return known[i].error;
    return -1;
}

int main(int argc, char** argv) {
    const char* const how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "prctl") == 0 || strcmp(how, "syscall") == 0) {
        allow_only_what_is_needed(strcmp(how, "syscall") == 0);
        work_repeatedly();
        fork_once();
        CHECK(execl("/nonexistent", "nonexistent", NULL) == -1 && errno == ENOENT);
    } else if (strcmp(how, "alone") == 0) {
        forbid(SYS_futex);
        work((void*)7);
        fork_once();
    } else if (error_named(how) >= 0) {
        void* volatile first = argc > 2 ? malloc(1) : NULL;
        refuse_fixed_places(error_named(how));
        work_all();
        free(first);
    } else if (strcmp(how, "handler") == 0) {
        be_interrupted();
        work_all();
    } else if (strcmp(how, "dlopen") == 0) {
        void* volatile first = malloc(1);
        forbid(SYS_mprotect);
        CHECK(dlopen(NULL, RTLD_NOW) != NULL && dlopen("libc.so.6", RTLD_NOW) != NULL);
        free(first);
    } else if (strcmp(how, "execveat") == 0) {
        refuse_execveat();
        execute_open_file();
    } else if (strcmp(how, "counter") == 0) {
        if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0) {
            dprintf(1, "no counter here\n");
            return 77;
        }
        work_all();
    } else if (strcmp(how, "signal") == 0) {
        struct sock_filter filter[] = {RETURN(SECCOMP_RET_ALLOW)};
        install(filter, 1, 0);
        work_all();
        raise(SIGTERM);
    } else {
        dprintf(2,
                "filtered prctl|syscall|alone|EINVAL|EPERM|EACCES|ENOSYS|kill [later]|handler|dlopen|execveat|counter|"
                "signal\n");
        return 2;
    }
    // Not by stdio, which asks for the file's kind.
    static const char said[] = "the filter was kept\n";
    _exit(write(1, said, sizeof said - 1) == sizeof said - 1 ? 0 : 1);
}

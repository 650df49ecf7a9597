// What own_calls.c replaces is called wherever its library lies among the preloaded ones: each exec once, the others
// too.
#define _GNU_SOURCE
#include "c_check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PROGRAM "/bin/true"
static char* const argv[] = {(char*)"true", NULL};

static void exec_by(int how) {
    switch (how) {
        case 0: execl(PROGRAM, "true", (char*)NULL); break;
        case 1: execle(PROGRAM, "true", (char*)NULL, environ); break;
        case 2: execlp("true", "true", (char*)NULL); break;
        case 3: execv(PROGRAM, argv); break;
        case 4: execve(PROGRAM, argv, environ); break;
        case 5: execvp("true", argv); break;
        case 6: execvpe("true", argv, environ); break;
        default: fexecve(open(PROGRAM, O_RDONLY | O_CLOEXEC), argv, environ); break;
    }
}

int main(void) {
    unsetenv("LD_PRELOAD");
    free(malloc(1));  // nothing is called before the first malloc
    for (volatile int how = 0; how < 8; ++how) {
        const pid_t child = how % 2 == 0 ? vfork() : fork();
        CHECK(child >= 0);
        if (child == 0) {
            exec_by(how);
            _exit(1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    const volatile int* const seen = (const volatile int*)dlsym(RTLD_DEFAULT, "own_calls_seen");
    CHECK(seen != NULL);
    cpu_set_t mask;
    const int before = *seen;
    CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0 && *seen == before + 1);
    CHECK(sched_setaffinity(0, sizeof mask, &mask) == 0 && *seen == before + 2);
    CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) >= 0 && *seen == before + 3);
    // Errors are those of libc.
    errno = 0;
    CHECK(sched_setaffinity(0, 0, &mask) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(fexecve(0, NULL, environ) == -1 && errno == EINVAL);
    puts(" every call was seen");
    return 0;
}

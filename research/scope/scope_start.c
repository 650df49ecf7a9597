/* Starts a program so that numascope knows it: scope_start MAIN RUN PROGRAM [ARGUMENT]..., MAIN being the address of
   its main in hexadecimal, or 0 for its first instruction, and RUN a number to know the run by. Says what lies where
   when it ends, and ends as it does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scope_markers.h"

static void tell_maps(pid_t program) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", program);
    char* maps = NULL;
    size_t length = 0, room = 0;
    const int file = open(path, O_RDONLY);
    ssize_t got = 1;
    while (file >= 0 && got > 0) {
        if (length == room) {
            char* const larger = realloc(maps, room += 1 << 20);
            if (!larger) break;
            maps = larger;
        }
        got = read(file, maps + length, room - length);
        if (got > 0) length += (size_t)got;
    }
    if (file >= 0) close(file);
    SCOPE_MARK(SCOPE_MARK_MAPS, maps, length);
    free(maps);
}

static void become(int go, char** command, unsigned long main_address, unsigned long run) {
    char any;
    while (read(go, &any, 1) < 0 && errno == EINTR) {}
    close(go);
    SCOPE_MARK(SCOPE_MARK_ARM, main_address, run);
    execv(command[0], command);
    fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

int main(int count, char** arguments) {
    if (count < 4) {
        fprintf(stderr, "usage: scope_start MAIN RUN PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    int go[2];
    if (pipe2(go, O_CLOEXEC)) return 125;
    SCOPE_MARK(SCOPE_MARK_LAUNCHER, 0ul, 0ul);
    const pid_t program = fork();
    if (program < 0) return 125;
    if (program == 0) {
        close(go[1]);
        become(go[0], arguments + 3, strtoul(arguments[1], NULL, 16), strtoul(arguments[2], NULL, 10));
    }
    /* Followed so far that it stops once more when it ends, while its memory is still there to be asked about; and it
       ends with its launcher. */
    if (ptrace(PTRACE_SEIZE, program, 0, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)) return 125;
    close(go[0]);
    close(go[1]);
    int status;
    for (;;) {
        if (waitpid(program, &status, __WALL) < 0) {
            if (errno == EINTR) continue;
            return 125;
        }
        if (!WIFSTOPPED(status)) break;
        int signal = 0;
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) tell_maps(program);
        else if (status >> 16 == PTRACE_EVENT_STOP) {
            ptrace(PTRACE_LISTEN, program, 0, 0);
            continue;
        } else signal = WSTOPSIG(status);
        ptrace(PTRACE_CONT, program, 0, signal);
    }
    const unsigned long code =
        WIFSIGNALED(status) ? 128ul + (unsigned long)WTERMSIG(status) : (unsigned long)WEXITSTATUS(status);
    SCOPE_MARK(SCOPE_MARK_END, code, 0ul);
    return (int)code;
}

// deny EPERM|ENOSYS|KILL CALL,CALL,... COMMAND...: runs the command under a seccomp filter that answers
// the named system calls with that error, as container runtimes do, or kills the process for them.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    int number;
} known[] = {
    {"mbind", SYS_mbind},
    {"get_mempolicy", SYS_get_mempolicy},
    {"set_mempolicy", SYS_set_mempolicy},
    {"move_pages", SYS_move_pages},
    {"madvise", SYS_madvise},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"getcpu", SYS_getcpu},
    {"rseq", SYS_rseq},
    {"membarrier", SYS_membarrier},
    {"mremap", SYS_mremap},
    {"munmap", SYS_munmap},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"migrate_pages", SYS_migrate_pages},
    {"set_mempolicy_home_node", 450},
};

int main(int argc, char **argv) {
    struct sock_filter filter[64];
    unsigned short n = 0;
    if (argc < 4) return fprintf(stderr, "usage: deny EPERM|ENOSYS|KILL CALL,... COMMAND...\n"), 2;
    const unsigned error = SECCOMP_RET_ERRNO | (strcmp(argv[1], "EPERM") == 0 ? EPERM : ENOSYS);
    const unsigned answer = strcmp(argv[1], "KILL") == 0 ? SECCOMP_RET_KILL_PROCESS : error;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ",")) {
        int number = -1;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strcmp(known[i].name, name) == 0) number = known[i].number;
        if (number < 0) return fprintf(stderr, "deny: unknown call %s\n", name), 2;
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("deny: seccomp");
        return 77;
    }
    execvp(argv[3], argv + 3);
    perror("deny: exec");
    return 127;
}

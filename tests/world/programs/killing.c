/* killing COMMAND...: under a filter that kills at system calls about memory nodes, as careful sandboxes have it. */
#include <seccomp.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int calls[] = {SCMP_SYS(get_mempolicy), SCMP_SYS(set_mempolicy), SCMP_SYS(mbind), SCMP_SYS(move_pages),
                   SCMP_SYS(migrate_pages)};
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        if (seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, calls[i], 0)) return 77;
    if (count < 2 || seccomp_load(filter)) return 77;
    execv(words[1], words + 1);
    perror(words[1]);
    return 1;
}

// Proves that `deny` denies: each call named must fail with the error named.
// denied_calls EPERM|ENOSYS CALL,CALL,...
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>

#include "check.h"

int main(int argc, char** argv) {
    CHECK(argc == 3);
    const int error = std::strcmp(argv[1], "EPERM") == 0 ? EPERM : ENOSYS;
    const struct {
        const char* name;
        long number;
    } known[] = {{"mbind", SYS_mbind},
                 {"get_mempolicy", SYS_get_mempolicy},
                 {"set_mempolicy", SYS_set_mempolicy},
                 {"move_pages", SYS_move_pages},
                 {"madvise", SYS_madvise},
                 {"sched_setaffinity", SYS_sched_setaffinity},
                 {"getcpu", SYS_getcpu},
                 {"rseq", SYS_rseq},
                 {"membarrier", SYS_membarrier},
                 {"mremap", SYS_mremap}};
    int denied = 0;
    for (char* name = std::strtok(argv[2], ","); name != nullptr; name = std::strtok(nullptr, ","))
        for (const auto& call : known)
            if (std::strcmp(call.name, name) == 0) {
                errno = 0;
                // Arguments that no call accepts: whatever the kernel itself says, it is neither error.
                CHECK(syscall(call.number, 1, 1, -1, -1, -1, -1) == -1 && errno == error);
                ++denied;
            }
    CHECK(denied > 0);
    std::puts("denied");
}

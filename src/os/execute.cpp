#include "os/execute.h"

#include <fcntl.h>

#include "os/syscall.h"

namespace numalloc::os {

long execute(int directory, const char* path, char* const argv[], char* const env[], int flags) {
    if (directory == AT_FDCWD && flags == 0) return call(SYS_execve, path, argv, env);
    return call(SYS_execveat, directory, path, argv, env, flags);
}

}  // namespace numalloc::os

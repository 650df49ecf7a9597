#include "os/execute.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "os/syscall.h"

namespace numalloc::os {

long execute(int directory, const char* path, char* const argv[], char* const env[], int flags) {
    if (directory == AT_FDCWD && flags == 0) return call(SYS_execve, path, argv, env);
    return call(SYS_execveat, directory, path, argv, env, flags);
}

long execute_file(int fd, char* const argv[], char* const env[]) {
    const long result = execute(fd, "", argv, env, AT_EMPTY_PATH);
    if (result != -ENOSYS) return result;
    Text<32> path;
    path << "/proc/self/fd/" << fd;
    const long by_path = execute(AT_FDCWD, path.c_str(), argv, env, 0);
    const bool has_proc = by_path != -ENOENT || call(SYS_faccessat, AT_FDCWD, "/proc/self/fd", F_OK) != -ENOENT;
    return has_proc ? by_path : -ENOSYS;
}

}  // namespace numalloc::os

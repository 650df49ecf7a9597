// Executes another program.
#pragma once

namespace numalloc::os {

// Calls execve, or execveat if `directory` is not AT_FDCWD or `flags` is not 0. Returns -errno on failure, and not at
// all on success. Async-signal-safe; keeps errno.
long execute(int directory, const char* path, char* const argv[], char* const env[], int flags);

// The same for an open file, as fexecve() does it: by /proc where the kernel, a filter or an emulator has no
// execveat(). -ENOSYS without /proc.
long execute_file(int fd, char* const argv[], char* const env[]);

}  // namespace numalloc::os

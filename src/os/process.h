// Becoming another program.
#pragma once

namespace numalloc::os {

// execve, or execveat where `directory` is not AT_FDCWD or flags are given. -errno; does not
// return when it works. Async-signal-safe; errno is kept.
long execute(int directory, const char* path, char* const argv[], char* const env[], int flags);

}  // namespace numalloc::os

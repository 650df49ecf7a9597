// The profile as a file in pprof's format (profile.proto of github.com/google/pprof), not compressed.
#pragma once

#include "heap/profile/recorded.h"

namespace numalloc::profile {

// Every %p in it stands for the number of the process; %% for a percent sign.
struct Path {
    char text[4096];
};
// false where the pattern is too long.
bool make_path(const char* pattern, Path& path);
// Whether processes can be told apart by it.
bool names_process(const char* pattern);

// What the profile has now; `why` it is written goes into its comments. 0, or -errno.
long write(const char* path, const char* why);

}  // namespace numalloc::profile

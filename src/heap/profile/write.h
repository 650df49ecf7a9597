// Writes the profile in pprof's format (profile.proto of github.com/google/pprof), not compressed.
#pragma once

#include "heap/profile/recorded.h"

namespace numalloc::profile {

// Made from a pattern: %p stands for the process's number, %% for a percent sign.
struct Path {
    char text[4096];
};
// Returns false if the path is too long or empty.
bool make_path(const char* pattern, Path& path);
// Whether the pattern has a %p, so that each process gets a file of its own.
bool names_process(const char* pattern);

// Writes the current profile. `why` goes into its comments. Returns 0, or -errno.
long write(const char* path, const char* why);

}  // namespace numalloc::profile

// Interposed: the functions that start a child inside libc, where fork's handlers do not run. The child gets the user's
// affinity mask. fork is covered by its handlers, exec by exec.cpp.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <wordexp.h>

#include "api/export.h"
#include "api/interpose/next.h"
#include "placement/placement.h"

using numalloc::placement::AsTheUserSetIt;

extern "C" NUMALLOC_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                                           const posix_spawnattr_t* attr, char* const argv[], char* const env[]) {
    const AsTheUserSetIt widened;
    return NUMALLOC_NEXT(posix_spawn)(pid, path, actions, attr, argv, env);
}

extern "C" NUMALLOC_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                                            const posix_spawnattr_t* attr, char* const argv[], char* const env[]) {
    const AsTheUserSetIt widened;
    return NUMALLOC_NEXT(posix_spawnp)(pid, file, actions, attr, argv, env);
}

extern "C" NUMALLOC_EXPORT int system(const char* command) {
    const AsTheUserSetIt widened;
    return NUMALLOC_NEXT(system)(command);
}

extern "C" NUMALLOC_EXPORT FILE* popen(const char* command, const char* mode) {
    const AsTheUserSetIt widened;
    return NUMALLOC_NEXT(popen)(command, mode);
}

extern "C" NUMALLOC_EXPORT int wordexp(const char* words, wordexp_t* result, int flags) {
    const AsTheUserSetIt widened;
    return NUMALLOC_NEXT(wordexp)(words, result, flags);
}

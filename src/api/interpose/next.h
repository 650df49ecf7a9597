// The functions behind those that numalloc interposes: libc's, or the next preloaded library's. The first call looks
// all of them up. The start of the library makes it (fork_handlers.cpp), because dlsym() clears the message that a
// program may still read by dlerror().
#pragma once

namespace numalloc::api {

// clang-format off
#define NUMALLOC_NEXT_FUNCTIONS(F) \
    F(_Fork) F(__register_atfork) F(clone) F(dlmopen) F(dlopen) F(execl) F(execle) F(execlp) F(execv) F(execve) \
    F(execveat) F(execvp) F(execvpe) F(fexecve) F(popen) F(posix_spawn) F(posix_spawnp) F(prctl) F(pthread_create) \
    F(pthread_getaffinity_np) F(pthread_getattr_np) F(pthread_setaffinity_np) F(pthread_setattr_default_np) \
    F(sched_getaffinity) F(sched_setaffinity) F(system) F(thrd_create) F(wordexp)
// clang-format on
#define NUMALLOC_NUMBER(name) name,
enum class Next : int { NUMALLOC_NEXT_FUNCTIONS(NUMALLOC_NUMBER) count };
#undef NUMALLOC_NUMBER

// The first symbol of that name in the libraries behind numalloc, or nullptr: dlsym(RTLD_NEXT), but always libc's. A
// library that replaces dlsym() (shims of GPUs, overlays of games) and passes RTLD_NEXT on asks from its own place, and
// would find numalloc's function.
void* symbol_behind(const char* name);

bool is_of_libc(const void* function);

// Returns nullptr if this libc has no such function.
void* next_function(Next which);
// The same if it is another library's and not libc's, and else nullptr. Before the first malloc it
// is nullptr, too: the caller may be a child between vfork and exec, in which the library must not start.
void* others_function(Next which);

// Usage: NUMALLOC_NEXT(pthread_create)(thread, attr, start, argument)
#define NUMALLOC_NEXT(name)                                                                          \
    reinterpret_cast<decltype(&::name)>(::numalloc::api::next_function(::numalloc::api::Next::name))

#define NUMALLOC_OTHERS(name)                                                                          \
    reinterpret_cast<decltype(&::name)>(::numalloc::api::others_function(::numalloc::api::Next::name))

}  // namespace numalloc::api

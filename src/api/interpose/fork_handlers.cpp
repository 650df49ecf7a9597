// Interposed: what pthread_atfork() comes down to. Handlers are called in the reverse order of their registration
// before a fork, and in that order after it. Registered first of all, ours are called last before the fork and first
// after it, which is where libc locks its own malloc: everybody else's handlers find a malloc that works for every
// thread.
//
// Where somebody else was first after all (the static library, which can interpose nothing; a library opened by
// dlopen), a handler of theirs that allocates works all the same: os/fork_gate.h.
#include "api/interpose/fork_handlers.h"

#include <atomic>

#include "api/export.h"
#include "api/interpose/next.h"

extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* object) noexcept;

namespace numalloc::api {

namespace {

decltype(&__register_atfork) libc_function() {
#if defined(NUMALLOC_STATIC)
    return &__register_atfork;
#else
    return NUMALLOC_NEXT(__register_atfork);
#endif
}

constinit std::atomic<bool> registered{false};

}  // namespace

void register_fork_handlers() {
    if (registered.load(std::memory_order_relaxed) || registered.exchange(true, std::memory_order_acq_rel)) return;
    // Of no object, for an object's go when it is finalised: destructors that run later may fork, too.
    libc_function()(fork_prepare, fork_parent, fork_child, nullptr);
}

}  // namespace numalloc::api

#if !defined(NUMALLOC_STATIC)
extern "C" NUMALLOC_EXPORT int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                                 void* object) noexcept {
    numalloc::api::register_fork_handlers();
    return numalloc::api::libc_function()(prepare, parent, child, object);
}
#endif

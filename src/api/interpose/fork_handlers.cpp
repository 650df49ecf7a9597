// Interposed: __register_atfork(), which pthread_atfork() calls. Before a fork libc calls the handlers in the reverse
// order of their registration, and after it in that order. Numalloc's are registered first, so they run last before the
// fork and first after it, where libc locks its own malloc. For all other handlers malloc works in every thread.
//
// Handlers may be registered before numalloc's with the static library, which interposes nothing, and if numalloc is
// opened by dlopen. They may allocate, too: os/fork_gate.h.
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
    // Registered for no object: libc drops an object's handlers when it finalises the object, and destructors that run
    // later may fork, too.
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

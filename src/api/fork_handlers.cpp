#include "api/fork_handlers.h"

#include <atomic>

extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* object) noexcept;

namespace numalloc::api {

namespace {
constinit std::atomic<bool> registered{false};
}

void register_fork_handlers() {
    if (registered.load(std::memory_order_relaxed) || registered.exchange(true)) return;
    // Of no object, for an object's go when it is finalised: destructors that run later may fork, too.
    __register_atfork(fork_prepare, fork_parent, fork_child, nullptr);
}

}  // namespace numalloc::api

// The common part of the calls that name a place: check, allocate there, set errno.
#pragma once

#include <malloc.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "api/malloc/allocate.h"
#include "api/malloc/aside.h"

namespace numalloc::api {

inline void* malloc_there(Bytes n, NodeId node) {
    void* p = allocate_on_node(n, 1, node).p;
    if (p != nullptr) return p;
    const auto next = NUMALLOC_ASIDE(malloc);
    return next != nullptr ? next(n) : no_memory();
}

inline void* calloc_there(Bytes count, Bytes size, NodeId node) {
    Bytes n;
    if (__builtin_mul_overflow(count, size, &n)) return no_memory();
    const Allocation object = allocate_on_node(n, 1, node);
    if (object.p == nullptr) {
        const auto next = NUMALLOC_ASIDE(calloc);
        return next != nullptr ? next(1, n) : no_memory();
    }
    clear(object, n);
    return object.p;
}

inline void* aligned_alloc_there(Bytes alignment, Bytes n, NodeId node) {
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return nullptr;
    }
    void* p = allocate_on_node(n, alignment, node).p;
    if (p != nullptr) return p;
    const auto next = NUMALLOC_ASIDE(memalign);  // a sanitizer's aligned_alloc() takes multiples only
    return next != nullptr ? next(alignment, n) : no_memory();
}

// `node` may be no_node if `p` is not null: the block then stays on the node where it is meant to be.
inline void* realloc_there(void* p, Bytes n, NodeId node, const char* call) {
    if (p == nullptr) return malloc_there(n, node);
    if (n == 0) {
        free_any(p, call);
        return nullptr;
    }
    void* q = reallocate_on_node(p, n, node, call);
    return q != nullptr ? q : no_memory();
}

}  // namespace numalloc::api

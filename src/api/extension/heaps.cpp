// Heaps that a program creates for itself on one node.
#include "api/export.h"
#include "api/extension/nodes.h"
#include "api/extension/on_node.h"
#include "api/malloc/initialise.h"
#include "heap/program_heaps/bound_heap.h"
#include "heap/thread/deferred.h"
#include "numalloc/numalloc.h"
#include "os/topology.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

BoundHeap* inner(numalloc_heap* h) { return reinterpret_cast<BoundHeap*>(h); }
const BoundHeap* inner(const numalloc_heap* h) { return reinterpret_cast<const BoundHeap*>(h); }

Allocation allocate(numalloc_heap* h, Bytes n, Bytes alignment) {
    if (n > largest_request || alignment > largest_request) return {no_memory()};
    const Allocation object = allocate_in(inner(h), max_of<Bytes>(n, 1), alignment);
    if (object.p == nullptr) no_memory();
    return object;
}

}  // namespace

extern "C" {

NUMALLOC_EXPORT numalloc_heap* numalloc_heap_create(int node) noexcept {
    const NodeId n = named_node(node);
    if (n == no_node) return nullptr;
    BoundHeap* h = process_heap.started() ? BoundHeap::create(n) : nullptr;
    return h != nullptr ? reinterpret_cast<numalloc_heap*>(h) : static_cast<numalloc_heap*>(no_memory());
}

NUMALLOC_EXPORT void numalloc_heap_destroy(numalloc_heap* h) noexcept {
    if (h == nullptr) return;
    catch_up();
    if (profile::on()) profile::freeing_all(inner(h));
    inner(h)->destroy();
}

NUMALLOC_EXPORT void numalloc_heap_reset(numalloc_heap* h) noexcept {
    catch_up();
    if (profile::on()) profile::freeing_all(inner(h));
    inner(h)->reset();
}

NUMALLOC_EXPORT void* numalloc_heap_malloc(numalloc_heap* h, size_t size) noexcept { return allocate(h, size, 1).p; }

NUMALLOC_EXPORT void* numalloc_heap_calloc(numalloc_heap* h, size_t count, size_t size) noexcept {
    size_t n;
    if (__builtin_mul_overflow(count, size, &n)) return no_memory();
    const Allocation object = allocate(h, n, 1);
    if (object.p != nullptr) clear(object, n);
    return object.p;
}

NUMALLOC_EXPORT void* numalloc_heap_aligned_alloc(numalloc_heap* h, size_t alignment, size_t size) noexcept {
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return nullptr;
    }
    return allocate(h, size, alignment).p;
}

NUMALLOC_EXPORT void* numalloc_heap_realloc(numalloc_heap* h, void* p, size_t size) noexcept {
    if (p == nullptr) return numalloc_heap_malloc(h, size);
    if (size == 0) {
        free_slow(p, Pushed::elsewhere, "numalloc_heap_realloc");
        return nullptr;
    }
    void* q = reallocate_in(inner(h), p, size, "numalloc_heap_realloc");
    return q != nullptr ? q : no_memory();
}

NUMALLOC_EXPORT int numalloc_heap_node(const numalloc_heap* h) noexcept {
    return static_cast<int>(os::topology().os_node(inner(h)->node()));
}

NUMALLOC_EXPORT size_t numalloc_heap_used(const numalloc_heap* h) noexcept {
    catch_up();
    return inner(h)->use().used;
}

NUMALLOC_EXPORT size_t numalloc_heap_held(const numalloc_heap* h) noexcept {
    catch_up();
    return inner(h)->use().held;
}

NUMALLOC_EXPORT void numalloc_heap_set_limit(numalloc_heap* h, size_t bytes) noexcept { inner(h)->set_limit(bytes); }

NUMALLOC_EXPORT int numalloc_heap_contains(const numalloc_heap* h, const void* p) noexcept {
    const Location at = locate(p);
    return at.found == Found::bound && BoundHeap::of(at) == inner(h) ? 1 : 0;
}

NUMALLOC_EXPORT void numalloc_heap_visit(const numalloc_heap* h,
                                         void (*visit)(void* object, size_t bytes, void* argument),
                                         void* argument) noexcept {
    catch_up();
    struct Visitor {
        void (*visit)(void* object, size_t bytes, void* argument);
        void* argument;
    } visitor{visit, argument};
    inner(h)->each_object(
        [](void* context, void* object, Bytes bytes) {
            const auto* const v = static_cast<const Visitor*>(context);
            v->visit(object, bytes, v->argument);
        },
        &visitor);
}

}  // extern "C"

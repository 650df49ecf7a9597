// Partitioned shared memory: blocks on the node of a thread, whichever thread allocates (JArena).
#include "api/export.h"
#include "api/extension/on_node.h"
#include "api/malloc/initialise.h"
#include "numalloc/numalloc.h"
#include "os/topology.h"
#include "placement/owners.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

// The owner's node. Returns no_node with errno ENOMEM or EINVAL.
NodeId node_of(int owner) {
    wake();
    bool out_of_memory;
    bool moved;
    const NodeId node = placement::node_of_owner(owner, &out_of_memory, &moved);
    if (moved) settle_heap();
    if (node == no_node) errno = out_of_memory ? ENOMEM : EINVAL;
    return node;
}
// The same for the place of memory.
NodeId place_of(int owner) {
    const NodeId node = node_of(owner);
    if (node != no_node) process_heap.name_nodes();
    return node;
}

}  // namespace

extern "C" {

NUMALLOC_EXPORT void* psm_alloc(size_t bytes, int owner) noexcept {
    const NodeId n = place_of(owner);
    return n == no_node ? nullptr : malloc_there(bytes, n);
}

NUMALLOC_EXPORT void* psm_calloc(size_t count, size_t size, int owner) noexcept {
    const NodeId n = place_of(owner);
    return n == no_node ? nullptr : calloc_there(count, size, n);
}

NUMALLOC_EXPORT void* psm_aligned_alloc(size_t alignment, size_t bytes, int owner) noexcept {
    const NodeId n = place_of(owner);
    return n == no_node ? nullptr : aligned_alloc_there(alignment, bytes, n);
}

NUMALLOC_EXPORT void* psm_realloc(void* p, size_t bytes) noexcept {
    if (p == nullptr) return psm_alloc(bytes, psm_self());
    return realloc_there(p, bytes, no_node, "psm_realloc");
}

NUMALLOC_EXPORT void psm_free(void* p) noexcept { free_any(p, "psm_free"); }

NUMALLOC_EXPORT int psm_owner_node(int owner) noexcept {
    const NodeId n = node_of(owner);
    return n == no_node ? -1 : static_cast<int>(os::topology().os_node(n));
}

NUMALLOC_EXPORT int psm_self(void) noexcept {
    wake();
    return placement::owner_of_caller();
}

NUMALLOC_EXPORT int psm_register(int owner) noexcept {
    wake();
    if (owner < 0 || owner >= placement::most_owners) {
        errno = EINVAL;
        return -1;
    }
    bool moved;
    if (!placement::register_owner(owner, &moved)) {
        errno = ENOMEM;
        return -1;
    }
    if (moved) settle_heap();
    return 0;
}

#define NUMALLOC_SAME_AS(name) __attribute__((alias(#name), visibility("default")))
void* numalloc_psm_alloc(size_t, int) noexcept NUMALLOC_SAME_AS(psm_alloc);
void* numalloc_psm_calloc(size_t, size_t, int) noexcept NUMALLOC_SAME_AS(psm_calloc);
void* numalloc_psm_aligned_alloc(size_t, size_t, int) noexcept NUMALLOC_SAME_AS(psm_aligned_alloc);
void* numalloc_psm_realloc(void*, size_t) noexcept NUMALLOC_SAME_AS(psm_realloc);
void numalloc_psm_free(void*) noexcept NUMALLOC_SAME_AS(psm_free);
int numalloc_psm_owner_node(int) noexcept NUMALLOC_SAME_AS(psm_owner_node);
int numalloc_psm_self(void) noexcept NUMALLOC_SAME_AS(psm_self);
int numalloc_psm_register(int) noexcept NUMALLOC_SAME_AS(psm_register);

}  // extern "C"

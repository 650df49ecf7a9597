// Usable sizes before the call, resizing in place, and many blocks in one call.
#include <malloc.h>

#include "api/export.h"
#include "api/extension/on_node.h"
#include "heap/profile/profile.h"
#include "heap/program_heaps/any_object.h"
#include "numalloc/numalloc.h"

using namespace numalloc;
using namespace numalloc::api;

extern "C" {

NUMALLOC_EXPORT size_t numalloc_good_size(size_t size) noexcept {
    if (size <= largest_small) return shape_of(class_for(size)).size - tail_bytes;
    const std::uint32_t bags = bags_for_big(size);
    return bags == 0 ? 0 : (Bytes{PageHeap::whole_pages(bags)} << bag_shift) - tail_bytes;
}

NUMALLOC_EXPORT size_t numalloc_resize_in_place(void* p, size_t size) noexcept {
    if (const auto next = NUMALLOC_ASIDE(malloc_usable_size)) return next(p);
    const Location at = locate_object(p, "numalloc_resize_in_place");
    // Without a target, resize_object() moves nothing, and makes no small object of a big one. The heap profile records
    // each resizing as a free and a malloc, so blocks keep their size while it is on.
    const bool may_change = (at.found == Found::big || at.found == Found::bound) && !profile::on();
    if (may_change)
        if (const os::Inside inside; inside) resize_object({at, max_of(size, small_limit + 1), {}, true});
    return size_of(at);
}

NUMALLOC_EXPORT size_t numalloc_malloc_batch(size_t size, void** blocks, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) {
        void* p = allocate_fast(size);
        if (p == nullptr) p = allocate_slow(size).p;
        if (p == nullptr) {
            const auto next = NUMALLOC_ASIDE(malloc);
            p = next != nullptr ? next(size) : no_memory();
        }
        if (p == nullptr) return i;
        blocks[i] = p;
    }
    return count;
}

NUMALLOC_EXPORT void numalloc_free_batch(void* const* blocks, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) free_any(blocks[i], "numalloc_free_batch");
}

}  // extern "C"

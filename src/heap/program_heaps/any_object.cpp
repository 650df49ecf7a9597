#include "heap/program_heaps/any_object.h"

#include "heap/program_heaps/bound_heap.h"
#include "heap/space/invalid.h"

namespace numalloc {

const char* why_invalid(Location at, const void* p) {
    switch (at.found) {
        case Found::foreign: return "was not allocated by numalloc";
        case Found::unused: return "was never allocated";
        case Found::nothing: return "is not an allocated object, or was freed already";
        case Found::small:
            if (const char* why = ClassHeap::why_invalid(at.owner->pages.region(), at.bag, at.class_id, p)) return why;
            return was_freed(static_cast<const Object*>(p)) ? "was freed already" : nullptr;
        case Found::bound: return BoundHeap::why_invalid(at, p);
        case Found::guarded: return guarded::why_invalid(p);
        case Found::side: return side::why_invalid(p);
        case Found::big: break;
    }
    return nullptr;
}

// Valid objects of bound heaps, the guarded region and the side heap are checked here too, and pass.
void end_if_invalid(Location at, const void* p, const char* call) {
    if (const char* why = why_invalid(at, p)) die_of_invalid_pointer(call, p, why);
}

void* resize_object(const Resize& resize) {
    const Location at = resize.at;
    if (resize.bytes <= small_limit) return nullptr;
    if (at.found == Found::big) return process_heap.resize_big(resize);
    const std::uint32_t bags = bags_for(resize.bytes);
    if (at.found != Found::bound || !resize.may_stay || bags == 0 || !BoundHeap::resize_big(at, bags)) return nullptr;
    return at.owner->pages.region().address(at.bag);
}

}  // namespace numalloc

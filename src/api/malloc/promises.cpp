#include "api/malloc/promises.h"

#include "heap/node/locate.h"

namespace numalloc::api {

namespace {

// All bytes of an object that is allocated with this size and alignment; 0 if there can be none.
Bytes bytes_for(Bytes n, Bytes alignment) {
    if (n > largest_request || alignment > largest_request) return 0;
    n = max_of<Bytes>(n, 1);
    if (alignment <= bag_bytes && round_up(n, alignment) <= largest_small)
        return shape_of(class_for(round_up(n, alignment), alignment)).size;
    return Bytes{PageHeap::whole_pages(bags_for_big(n))} << bag_shift;
}

// Locates an object in use that has a tail. Returns an empty Location for everything else.
Location locate_in_use(const void* p) {
    const Location at = locate(p);
    const bool in_use = has_tail(at) && (at.found == Found::big || begins_in_use(at, p));
    return in_use ? at : Location{};
}

[[noreturn]] void die_of_other_size(const char* call, const void* p) {
    die_of_invalid_pointer(call, p, "was allocated with another size");
}

}  // namespace

void end_if_not_of_size(const void* p, Bytes n, Bytes alignment, const char* call) {
    const Location at = locate_in_use(p);
    if (at.found == Found::foreign) return;
    // Classes for alignments may be as long as others.
    if (bytes_for(n, alignment) != bytes_of(at) || (address_of(p) & (max_of<Bytes>(alignment, 1) - 1)) != 0)
        die_of_other_size(call, p);
}

void end_if_not_resized_to(const void* p, Bytes n, const char* call) {
    const Location at = locate_in_use(p);
    if (at.found == Found::foreign || bytes_for(n, 1) == bytes_of(at)) return;
    // Without memory, a realloc to a small size leaves a big object unchanged.
    const bool left = at.found == Found::small ? fits(at, n) : n <= largest_small;
    if (!left) die_of_other_size(call, p);
}

void end_if_not_of_origin(const void* p, Origin wanted, const char* call) {
    const Location at = locate_in_use(p);
    if (at.found == Found::foreign) return;
    const Origin origin = origin_at(p, bytes_of(at));
    // The tail was overwritten, which free() reports.
    if (origin >= origins || origin == wanted) return;
    if (form_of(origin) == form_of(wanted)) die_of_invalid_pointer(call, p, "was allocated with another alignment");
    switch (form_of(origin)) {
        case Form::malloc: die_of_invalid_pointer(call, p, "was allocated by malloc");
        case Form::single: die_of_invalid_pointer(call, p, "was allocated by operator new");
        case Form::array: die_of_invalid_pointer(call, p, "was allocated by operator new[]");
    }
}

void set_origin(void* p, Origin origin) {
    const Location at = locate(p);
    if (has_tail(at)) set_tail(p, bytes_of(at), origin);
}

}  // namespace numalloc::api

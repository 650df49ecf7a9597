// Functions for an object of any kind: each decides by Location::found. heap/node, which has locate(), does not know
// bound heaps.
#pragma once

#include "heap/node/locate.h"

namespace numalloc {

// Returns why `p`, located as `at`, cannot be an object in use, or nullptr. As exact as locate().
const char* why_invalid(Location at, const void* p);

// Ends the program if why_invalid() finds a reason. The message names `call`.
void end_if_invalid(Location at, const void* p, const char* call);

// Locates an object in use. Ends the program if `p`, which was located `at`, is not one.
inline Location located_object(Location at, const void* p, const char* call) {
    const bool right = at.found == Found::small ? begins_in_use(at, p) : at.found == Found::big;
    if (NUMALLOC_UNLIKELY(!right)) end_if_invalid(at, p, call);
    return at;
}
inline Location locate_object(const void* p, const char* call) { return located_object(locate(p), p, call); }

inline Bytes usable_size(const void* p, const char* call) { return size_of(locate_object(p, call)); }

// Resizes a big object, or one of a bound heap: in place if it may stay. Otherwise moves the pages of a big object to a
// longer run if the target is the node of its region. Returns the new address, or nullptr if neither is possible, as
// for all other objects and for up to 512 KiB.
void* resize_object(const Resize& resize);

}  // namespace numalloc

// Big objects over several nodes. Their pages have a policy of their own, like those of moved objects. bring_back()
// restores the node's policy where they are freed or cut off.
#pragma once

#include "heap/node/locate.h"

namespace numalloc {

// How memory is spread over several nodes. Nodes are the kernel's numbers.
struct Spread {
    enum class How : std::uint8_t { not_at_all, interleaved, bound, weighted };
    How how = How::not_at_all;
    const std::uint8_t* weights = nullptr;  // weighted: for each of `nodes`, ascending, a weight > 0
    os::NodeMask nodes;
};

// Spreads the pages of a newly taken big object and discards its contents. If the kernel refuses the policy, pages come
// by first touch.
void spread_big(Location at, const Spread& how);
// Whether a run of a bound heap consists of whole pages. Only such a one can have a policy of its own: what lies beside
// it on a page would be discarded with it.
bool is_whole_pages(const void* start, Bytes bytes);
// The same for such a run. Does nothing for others, and for Spread::not_at_all.
void spread_run(void* start, const Spread& how);
// Spreads the big object `at` like `other`, if that one is spread.
void spread_as(Location other, Location at);

}  // namespace numalloc

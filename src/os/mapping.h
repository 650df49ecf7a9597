// The kernel's mappings (VMAs) below a range: asked for, moved and renewed. As in memory.h,
// every function is thread-safe, keeps errno and says failure by its result; addresses and lengths are
// multiples of the page size.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// What became of a range whose mapping was to be replaced.
enum class Replaced {
    done,
    refused,  // the range is as it was, but may read as zero where it was about to be overwritten
    lost,     // the kernel unmapped it and gave nothing: no longer ours, never to be touched again
};

// Bytes from `p` on, at most `at_most`, that lie in one mapping and may thus be moved at once; 0
// where the kernel has no mremap for us.
Bytes mapping_length(void* p, Bytes at_most);

// Moves pages, with their mapping's flags and policy, to the disjoint range at `to`, which loses
// its contents; [from, from + bytes), of one mapping, stays mapped and reads as zero. The result
// is about `to`; unless `done`, nothing has happened to `from`.
Replaced move_mapping(void* from, void* to, Bytes bytes);

// Makes the range what map_at() makes of nothing: zero pages in a mapping that merges with
// its neighbours, without policy and advice.
Replaced renew(void* p, Bytes bytes);

}  // namespace numalloc::os

// Queries, moves and renews the kernel's mappings (VMAs) of a range. As in memory.h, every function is thread-safe,
// keeps errno and reports failure by its result; addresses and lengths are multiples of the page size.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// What became of a range whose mapping was to be replaced.
enum class Replaced {
    done,
    refused,  // as before, or reads as zero where it was about to be overwritten
    lost,     // the kernel unmapped it and mapped nothing: no longer ours, must not be touched
};

// Bytes from `p`, at most `at_most`, that lie in one mapping and can be moved at once. 0 if the kernel refuses mremap.
Bytes mapping_length(void* p, Bytes at_most);

// Moves pages, with the flags and the policy of their mapping, to the disjoint range at `to`, whose contents are lost.
// [from, from + bytes) lies in one mapping; it stays mapped and reads as zero. The result describes `to`; unless it is
// `done`, `from` is unchanged.
Replaced move_mapping(void* from, void* to, Bytes bytes);

// Whether the kernel locks what is mapped anew, as after mlockall(MCL_FUTURE). true also if nothing can be mapped.
bool locks_new_mappings();

// Whether the kernel grants the process one more mapping (vm.max_map_count): splits the mapping behind its untouched
// page `p`, and joins it again. true also after a filter.
bool grants_a_mapping(void* p);

// Replaces the range by fresh zero pages, as map_at() maps them: without policy or advice, in a mapping that merges
// with its neighbours.
Replaced renew(void* p, Bytes bytes);

}  // namespace numalloc::os

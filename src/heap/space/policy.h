// How much is kept and for how long, how far to look, how many at a time: every number of the heap that could be another one
// without anything breaking, with its reason. What was measured is in docs/measurements.md.
//
// Numbers that others depend on (the width of a field, a layout) are where these things are.
#pragma once

#include "base/bits.h"

namespace numalloc::policy {

struct Fraction {
    std::uint64_t of;
    std::uint64_t parts;
    constexpr std::uint64_t part_of(std::uint64_t n) const { return n / parts * of; }
};

// ---- Classes: how long bags, batches and rings are.

// A longer bag where the tail of a short one would be more than 1/8 lost; above 32 KiB, where the class may lose 1/5 by itself,
// 1/17. So no size loses more than 1/5 in all.
constexpr Bytes lost_part = 8;
constexpr Bytes lost_part_of_large = 17;

// Bytes of a batch, and objects at most: the walk that links them is one malloc's. A thread keeps at most three of a class.
constexpr Bytes batch_target(Bytes size) { return size <= 512 ? 8 * KiB : 24 * KiB; }
constexpr Bytes most_in_batch = 512;

// What a ring holds, in bytes and in lists.
constexpr Bytes ring_target = 128 * KiB;
constexpr unsigned ring_slots = 16;

// ---- Threads: what each may hold, and what its slow paths do beside their own work.

// A list begins with an eighth of a batch, two objects at least, and doubles: a thread that uses a class once does not take a
// page for it.
constexpr std::uint32_t first_list_part = 8;
constexpr std::uint32_t shortest_list = 2;
// A full list of half a batch more than one keeps its newest: that many go once, and the next time half.
constexpr std::uint32_t grown_list_part = 2;
constexpr std::uint32_t kept_again_part = 2;

// A thread's lists may hold any_may_hold bytes at first, and twice as many after each 64 slow paths, as far as the node grants
// them, granted_to_lists bytes at a time (list_budget.h).
constexpr std::uint32_t slow_paths_to_double = 64;
constexpr std::uint32_t most_doublings = 16;
constexpr Bytes any_may_hold = 192 * KiB;
constexpr Bytes granted_to_lists = 64 * KiB;
// A node's budget for `in_use` bytes of bags in use. A smaller one makes busy threads flush lists and refill them at once:
// measurements.md, "What lists hold".
constexpr Bytes lists_may_hold(Bytes in_use) { return max_of(32 * MiB, in_use / 32); }
// A thread over its limit flushes lists until it holds half of the limit, so that it does not flush again at once.
constexpr Bytes held_again_part = 2;

// Batches are halved beyond so many threads of a node, and again beyond twice as many: what many threads hold together does not
// grow with their number.
constexpr std::uint32_t uncrowded = 128;

// Frees of the first thread's heap of which each pointer is checked; of later ones as many parts less, so that all threads
// together pay for some thousands.
constexpr std::uint32_t frees_to_check = 1000;
// Of a heap that served another thread before.
constexpr std::uint32_t frees_to_check_again = 16;

// Heaps of ended threads above all that are in use: so many stay, and more are given back from so many on.
constexpr std::uint32_t kept_unused = 16;
constexpr std::uint32_t most_unused = 64;

// Heaps of one node that are looked at for each that is made, whether their threads have died: so no more are lost than made.
constexpr unsigned dead_looked_for = 4;

// Of other nodes' objects a thread holds so many bytes, and fetches so many of a class at a time.
constexpr Bytes remote_budget = 64 * KiB;
constexpr Bytes remote_fetched = 4 * KiB;

// Once in so many slow paths housekeeping looks at a class: a round over the classes is some 250 slow paths.
constexpr std::uint32_t slow_paths_per_look = 2;
// And once in so many at the clock, which costs as much as the rest of a look.
constexpr std::uint32_t slow_paths_per_clock = 4;
// Every 16th slow path looks at the thread's grant.
constexpr std::uint32_t slow_paths_per_grant = 16;
constexpr std::uint32_t housekeeping_period = 100;  // milliseconds
// A node's rings are sorted by its own threads, to which that memory is near; by others when so late.
constexpr std::uint32_t left_to_own_threads = 3 * housekeeping_period;
// A program that only trickles has few slow paths: a part of its classes each period.
constexpr unsigned classes_a_period = 8;
// While there is more to give back than one call may: some 1 GiB a second, at a tenth of a CPU.
constexpr std::uint32_t busy_period = 8;

// ---- Shards.

// Into how many a class's bags are divided. Threads that are in different phases must not mix their objects, so there are some
// even where CPUs are few; beyond that one a CPU, so that no two wait for each other.
constexpr unsigned least_shards = 16;
constexpr unsigned most_shards = 128;

// Looking for an object that was freed twice costs a walk of its own: one list in so many.
constexpr std::uint32_t lists_per_walk = 32;

// A shard of which less is in use is sparse: what comes back goes to its bags, which become empty.
constexpr Fraction sparse_below{1, 2};
// And its ring is emptied each time that what is in use has fallen to this part.
constexpr Fraction flushed_below{3, 4};
// A thread keeps so small a part of what is in use of such a class: a kept object holds a whole bag.
constexpr std::uint64_t kept_of_sparse = 16;
// A shard of which less is in use gives others of it before they take new memory.
constexpr Fraction spares_below{7, 8};

// Two or three shards (a main thread and two that work) have a whole ring each, more have so many rings' worth together.
constexpr unsigned whole_rings = 2;
// From 4 KiB on a list has so few objects that threads which replace theirs at random would go to the bags at every third
// hand-over with one list in the ring: .16 locks a malloc and free of 16 threads, with two .10, with four .04.
constexpr Bytes sizes_with_short_lists = 4 * KiB;
constexpr unsigned lists_of_few = 4;

// Of what a large class's bags are, so much may rest in the ring of all shards: with an eighth 16 threads that replace large
// objects at random take .20 to .32 locks a malloc and free, with a sixth .09 to .17; peaks are the same (measurements.md).
constexpr Bytes resting_part = 6;
// How many classes above it a large object may come from: at most half as long again.
constexpr unsigned classes_above = 2;

// malloc_trim() looks into the bags of a shard every 100 ms at most, unless 1/8 of the shard's objects has been freed, or has come
// to use pages again, since the last look. A program that calls it after every operation would otherwise fault the same pages in
// after every call.
constexpr std::uint32_t look_again_after = 100;
constexpr Fraction much_changed{1, 8};
// A refill passes over 16 bags whose free objects are all away, and an adoption over 16 that are being cut.
constexpr unsigned bags_passed_over = 16;
// Where pages may be huge, only of bags of which a quarter can be returned: one page costs 64 MiB their huge pages.
constexpr unsigned returned_of_huge = 4;

// ---- Pages: what free memory stays resident, dirty_limit.h.

// Free memory that may stay: so much, and a part of what is in use.
constexpr Bytes dirty_floor = 4 * MiB;
constexpr std::uint64_t dirty_part = 4;
// What is taken replaces so many times as much of what was freed: in_use swings while blocks are replaced at random, and
// only a fall that lasts is one. Page faults of large-blocks/1, amd-numa/8 with 1, 2, 3: 210, 170, 132 and 68, 45, 42 thousand;
// but a program that frees three blocks for each that it takes and then sleeps keeps nothing, half of it, all.
constexpr std::uint64_t replaced_for_taken = 2;
// A fall to no less than two thirds is none: who sleeps then holds half as much again as it uses.
constexpr std::uint64_t short_fall_part = 2;
// Who frees two blocks for each that it takes has no fall, and may sleep then: more than so many times what is in use is not
// kept. The faults of the programs above are the same with 2 and 3; with 1 large-blocks has twice as many.
constexpr std::uint64_t idle_part = 2;
// Of what was regretted at least so much counts as proven, and a part of what was in use at most.
constexpr Bytes proven_floor = 16 * MiB;
constexpr std::uint64_t proven_part = 4;
// Holes too small for the next big object would cost twice the faults of amd-numa: so much beside what was in use at most.
constexpr std::uint64_t slack_part = 2;
// What was proven holds until the use at most has grown by this part.
constexpr std::uint64_t growth_part = 16;

// Pieces that became free within this part of purge_delay count as freed together.
constexpr std::int32_t together_part = 8;

// What exceeds the limit goes back so much at a time: one system call, and no more than that is given up of what may stay.
constexpr Bytes purged_at_once = 1 * MiB;
// At most so much a call that frees less than half of it: some half a millisecond of the kernel's.
constexpr Bytes purged_a_call = 8 * MiB;
constexpr std::uint32_t purged_for_freed = 2;
// After the kernel has refused (mlockall), it is left alone for so long: milliseconds.
constexpr std::uint32_t refusal_lasts = 1000;

// So many runs that are long enough but may lie askew are looked at, lowest first, before one that is sure to hold an aligned
// range.
constexpr unsigned aligned_tries = 16;

// Below this a copy is cheaper than asking for the mapping's end and moving it.
constexpr Bytes shortest_move = 128 * KiB;
// A block that grows to another place: from this length on the kernel moves page tables faster than memcpy moves bytes.
constexpr Bytes move_pages_from = 4 * MiB;
// Blocks that were moved lie in mappings of their own; the kernel allows a process 65,530, and each of ours may split one more.
constexpr std::uint32_t most_moved_mappings = 8192;

// calloc: a longer stretch may never have been written to since it was taken, and is looked at in pieces.
constexpr Bytes long_stretch = 4 * MiB;
// From this length on a stretch that holds mostly zeros is given back instead of cleared: from here on glibc always asks the
// kernel for new pages, too.
constexpr Bytes discarded_by_calloc = 32 * MiB;
// To write to a page that is there takes 0.1 of a microsecond, to fault it in 0.9, to give it back 0.1. Who used less than half
// of it will do so again: then giving all of it back is cheaper. (What holds zeros only counts as unused.) And a block that grows to
// a place of which at least half was used is copied: growing-arrays has a quarter of the page faults.
constexpr Bytes used_part = 2;

// Strict binding: a node is full when it has no more than the kernel keeps and this, for what waits on the CPUs' own lists and
// for what others take meanwhile.
constexpr Bytes strict_margin = 16 * MiB;
// Its free memory is a text in /sys: read for half of the margin at a time, so that a reading that old still leaves the other
// half to everybody else.
constexpr Bytes granted_at_once = strict_margin / 2;
constexpr std::uint32_t grant_period = 100;  // milliseconds
// A copy gives its pages back by so many: a small part of the margin.
constexpr Bytes copied_at_once = 1 * MiB;

// ---- Address space: what is mapped, and by what pages.

// Bags are mapped a 32nd of the heap at a time, half of it while it is small: few system calls for a large heap, and little
// slack (mlockall makes it resident, strict overcommit charges it, a limit on address space counts it).
constexpr Bytes smallest_step = 256 * KiB;
constexpr Bytes small_heap_step = 2 * MiB;
constexpr Bytes largest_step = 64 * MiB;
constexpr Bytes step_after(Bytes used) {
    const Bytes step = max_of(min_of(used / 2, small_heap_step), min_of(used / 32, largest_step));
    return max_of(align_down(step, smallest_step), smallest_step);
}
// A clean end that is shorter stays mapped: it costs nothing but addresses.
constexpr Bytes trimmed_from = 2 * MiB;
// A block that ends at the top may be asking the kernel how far its mapping goes, and lie in the way for a moment.
constexpr int tries_to_map = 3;

// Metadata is mapped for so many bytes of bags, and for thread heaps by so many.
constexpr Bytes metadata_step = 128 * MiB;
constexpr Bytes thread_heaps_step = 64 * KiB;
// free() may ask the class map for a pointer that was never allocated; so far beyond the bags it gets an answer.
constexpr Bytes class_map_ahead = 2 * GiB;

// Of a freed object the hardened library clears so much, and looks at it before the object is handed out again.
constexpr Bytes most_cleared = 4 * KiB;
// And so many of the objects that a thread freed it keeps from serving again, up to a size and beyond it: 1 MiB and 4 MiB at most.
constexpr Bytes quarantined_large = 4 * KiB;
constexpr std::uint32_t small_in_quarantine = 256;
constexpr std::uint32_t large_in_quarantine = 8;
// Of big objects it keeps so many for the process, each up to a part of a node's addresses: an eighth of them at most.
constexpr std::uint32_t big_in_quarantine = 32;
constexpr Bytes quarantined_big_part = 256;

// Huge pages are advised, and advised against, by stretches of so many: each may be a mapping of its own.
constexpr Bytes huge_stretch = 64 * MiB;
// One in so many is timed as it is touched first. After one that cost much more than clearing it (a host had to find it) no
// more are asked for so long: milliseconds.
constexpr std::uint32_t huge_pages_a_sample = 16;
constexpr std::uint32_t dear_for = 2000;
// The first part of a node's bags stays on normal pages even where the system says `always`: a small program is not charged
// 2 MiB for each page it touches.
constexpr Bytes normal_pages_first = 8 * MiB;
// And so much where it leaves huge pages to programs and, with thp=auto, the rest is asked for: a huge page in part used is at
// most 1/32 of what is there.
constexpr Bytes normal_pages_unless_asked = 64 * MiB;

}  // namespace numalloc::policy

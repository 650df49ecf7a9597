// The heap's tunable numbers: what it keeps, for how long, how far it searches, how much it does at a time. Changing
// one breaks nothing. Each comment gives the meaning, the unit and the reason; measurements: docs/measurements.md.
//
// Numbers that other code depends on (the width of a field, a layout) are defined beside that code.
#pragma once

#include "base/bits.h"

namespace numalloc::policy {

struct Fraction {
    std::uint64_t of;
    std::uint64_t parts;
    constexpr std::uint64_t part_of(std::uint64_t n) const { return n / parts * of; }
};

// ---- Size classes: the length of bags, batches and rings.

// The unusable tail of a bag is at most 1/8 of it, and 1/17 above 32 KiB, where rounding up to the class may already
// cost 1/5. A class whose tail would be longer gets longer bags, so no size from 100 bytes on wastes more than 1/5.
constexpr Bytes lost_part = 8;
constexpr Bytes lost_part_of_large = 17;

// Bytes of a batch for objects of `size` bytes, and the most objects of a batch. Longer batches need fewer refills, but
// one malloc links a whole batch, and a thread keeps up to three batches of a class.
constexpr Bytes batch_target(Bytes size) { return size <= 512 ? 8 * KiB : 24 * KiB; }
constexpr Bytes most_in_batch = 512;

// Capacity of a ring, in bytes and in lists: it bounds the free memory that waits for other threads.
constexpr Bytes ring_target = 128 * KiB;
constexpr unsigned ring_slots = 16;

// ---- Threads: what each may hold, and what its slow paths do for others.

// A thread's first list of a class has 1/8 of a batch, but at least two objects; each further list doubles. A thread
// that uses a class once does not touch a whole page for it.
constexpr std::uint32_t first_list_part = 8;
constexpr std::uint32_t shortest_list = 2;
// A full list longer than 3/2 of the thread's list length for the class keeps its newest objects. The next list may be
// longer by as many objects, or by half as many if an older list was flushed.
constexpr std::uint32_t grown_list_part = 2;
constexpr std::uint32_t kept_again_part = 2;

// All lists of a thread may hold 192 KiB at first. The limit doubles after every 64 slow paths, as far as the node
// grants memory: 64 KiB at a time (list_budget.h).
constexpr std::uint32_t slow_paths_to_double = 64;
constexpr std::uint32_t most_doublings = 16;
constexpr Bytes any_may_hold = 192 * KiB;
constexpr Bytes granted_to_lists = 64 * KiB;
// A node's budget for lists, in bytes, while `in_use` bytes of bags are in use. With a smaller budget busy threads
// flush lists and refill them immediately.
constexpr Bytes lists_may_hold(Bytes in_use) { return max_of(20 * MiB, in_use / 32); }
// A list of a thread near its limit keeps room for one more object if that has up to 2 KiB, so that the next free does
// not seal the list. One object of each larger class would be a large part of the limit.
constexpr Bytes room_for_one_more = 2 * KiB;
// A thread over its limit flushes idle lists until it holds half of the limit, and lists in use until it holds 7/8.
constexpr Fraction held_without_idle{1, 2};
constexpr Fraction held_by_busy{7, 8};

// With more than 128 threads on a node batches are halved, with more than 256 halved again, and so on, so that the
// memory held by all threads does not grow with their number.
constexpr std::uint32_t uncrowded = 128;

// The n-th thread heap of a node checks the pointers of its first 1,000 / n frees, and at least of 16; a reused heap
// checks at least 16 again. That finds the bugs of small programs, and long-running programs soon stop checking.
constexpr std::uint32_t frees_to_check = 1000;
constexpr std::uint32_t frees_to_check_again = 16;

// Unused thread heaps above the last one in use: if there are 64 or more, all but 16 return their memory.
constexpr std::uint32_t kept_unused = 16;
constexpr std::uint32_t most_unused = 64;

// Before a node makes a new thread heap, it checks four heaps for threads that ended unnoticed. So it finds lost heaps
// as fast as it makes new ones.
constexpr unsigned dead_looked_for = 4;

// Objects of other nodes: a thread holds 64 KiB of them at most, and fetches 4 KiB of a
// class at a time: few transfers, and little of another node's memory is held back.
constexpr Bytes remote_budget = 64 * KiB;
constexpr Bytes remote_fetched = 4 * KiB;

// Housekeeping. Every second slow path inspects one size class (a full round takes about 250 slow paths).
constexpr std::uint32_t slow_paths_per_look = 2;
// Only every fourth slow path reads the clock, to save time.
constexpr std::uint32_t slow_paths_per_clock = 4;
// Every 16th slow path adjusts the thread's grant.
constexpr std::uint32_t slow_paths_per_grant = 16;
constexpr std::uint32_t housekeeping_period = 100;  // milliseconds
// A node's own threads drain its rings, because draining reads each object. Threads of other nodes drain them when they
// are 300 ms overdue.
constexpr std::uint32_t left_to_own_threads = 3 * housekeeping_period;
// A program that allocates little has few slow paths, so each period inspects 1/8 of the classes as well.
constexpr unsigned classes_a_period = 8;
// Milliseconds between two purges while more is due than one call returns: 8 MiB a call are up to 1 GiB a second.
constexpr std::uint32_t busy_period = 8;

// ---- Shards.

// The number of shards of a class: one for each CPU, so that running threads rarely wait for each other's lock. At
// least 16, because threads in different phases should not mix their objects in one bag.
constexpr unsigned least_shards = 16;
constexpr unsigned most_shards = 128;

// One of 32 lists that threads return to a shard, the first included, is walked to find an object that was freed twice.
constexpr std::uint32_t lists_per_walk = 32;

// A shard is sparse if less than half of its objects are in use. Objects freed to it go to their bags at once, so that
// bags become empty.
constexpr Fraction sparse_below{1, 2};
// A sparse shard empties its ring each time its objects in use have fallen to 3/4 of what they were.
constexpr Fraction flushed_below{3, 4};
// A thread keeps at most 1/16 of a sparse shard's objects in use: each kept object holds a whole bag.
constexpr std::uint64_t kept_of_sparse = 16;
// A shard of which less than 7/8 is in use hands bags to other shards before these take new memory.
constexpr Fraction spares_below{7, 8};

// Up to three shards (a main thread and two workers) have a whole ring each. More shards share the room of two rings.
constexpr unsigned whole_rings = 2;
// From 4 KiB on a batch has few objects, so a ring has room for at least four lists: with fewer, threads take the
// shard's lock more often.
constexpr Bytes sizes_with_short_lists = 4 * KiB;
constexpr unsigned lists_of_few = 4;

// The ring that all shards of a large class share holds at most 1/6 of the class's bags. With less, threads take the
// shards' locks more often; with more, it keeps more unused memory.
constexpr Bytes resting_part = 6;
// A large object may come from one of the two classes above its own: it is then at most 1.5 times as long.
constexpr unsigned classes_above = 2;

// malloc_trim() inspects the bags of a shard every 100 ms at most, unless 1/8 of the shard's objects have been freed,
// or use pages again, since the last time. Otherwise a program that calls it after every operation would fault the same
// pages in after every call.
constexpr std::uint32_t look_again_after = 100;
constexpr Fraction much_changed{1, 8};
// A refill passes over 16 bags whose free objects are all away, and an adoption over 16 that are being cut: this bounds
// the time under the shard's lock.
constexpr unsigned bags_passed_over = 16;
// Where bags may lie on huge pages, malloc_trim() returns pages only of bags of which it can return 1/4: a single
// returned page costs its 64 MiB their huge pages.
constexpr unsigned returned_of_huge = 4;

// ---- Pages: which free memory stays resident. dirty_limit.h has the rule in which these numbers are used.

// Free memory that may always stay: 4 MiB, and 1/4 of the memory in use.
constexpr Bytes dirty_floor = 4 * MiB;
constexpr std::uint64_t dirty_part = 4;
// A taken bag offsets two freed bags, because the use of a program that replaces blocks at random swings. With 1 it
// faults more. With 3 a program that frees three blocks for each that it takes, and then sleeps, keeps everything.
constexpr std::uint64_t replaced_for_taken = 2;
// A fall of less than half of the memory still in use purges nothing. A program that sleeps then holds up to half as
// much again as it uses.
constexpr std::uint64_t short_fall_part = 2;
// Free memory beyond twice the memory in use is purged even without a fall, because a program that frees two blocks for
// each that it takes has none. With a lower limit programs that replace large blocks fault more.
constexpr std::uint64_t idle_part = 2;
// Up to 16 MiB of regretted memory may stay without proof, or 1/4 of the fall of the memory in use from its peak.
constexpr Bytes proven_floor = 16 * MiB;
constexpr std::uint64_t proven_part = 4;
// Beyond the peak of the memory in use, half as much may stay where holes are too small for the next big object.
// Without it such objects would be faulted in.
constexpr std::uint64_t slack_part = 2;
// Proven memory stays proven until the peak of the memory in use has grown by 1/16: the program is in a new phase then.
constexpr std::uint64_t growth_part = 16;

// Pieces freed within 1/8 of purge_delay of each other become one: fewer pieces, and nearly the right age.
constexpr std::int32_t together_part = 8;

// A purge takes 1 MiB more than is due: this saves system calls, and costs at most that much of what may stay.
constexpr Bytes purged_at_once = 1 * MiB;
// A free purges at most 8 MiB, which bounds its time in the kernel, or twice what it freed, so that purging keeps up.
constexpr Bytes purged_a_call = 8 * MiB;
constexpr std::uint32_t purged_for_freed = 2;
// Milliseconds without another try after the kernel refused to take pages (mlockall).
constexpr std::uint32_t refusal_lasts = 1000;

// An aligned request tries at most 16 runs that are long enough but may be misaligned, lowest address first. Then it
// takes a run that is longer by the alignment.
constexpr unsigned aligned_tries = 16;

// A shorter piece is copied, because that is cheaper than moving it.
constexpr Bytes shortest_move = 128 * KiB;
// A growing block of 4 MiB or more moves by mremap(): the kernel moves page tables faster than memcpy() moves bytes.
constexpr Bytes move_pages_from = 4 * MiB;
// Moved blocks lie in mappings of their own, and each may split another. The kernel allows a process 65,530
// mappings, and most of them are left to the program.
constexpr std::uint32_t most_moved_mappings = 8192;

// calloc checks long dirty memory in pieces of 4 MiB, because parts of it may never have been written.
constexpr Bytes long_stretch = 4 * MiB;
// calloc discards dirty memory of 32 MiB or more, instead of clearing it, if most of it is zero. From this length on
// glibc always gets new pages from the kernel.
constexpr Bytes discarded_by_calloc = 32 * MiB;
// Memory counts as used if at least half of it is not zero. Below half it is cheaper to discard it, since the program
// will probably leave it unused again and take few faults. A growing block is copied to a place that was used.
constexpr Bytes used_part = 2;

// Strict binding treats a node as full when its free memory is down to the kernel's reserve and 16 MiB: some of that is
// on the CPUs' own free lists, and other processes take some between two readings.
constexpr Bytes strict_margin = 16 * MiB;
// One reading of a node's free memory (a text in /sys) serves 8 MiB or 100 ms, so that half of the margin remains for
// other processes.
constexpr Bytes granted_at_once = strict_margin / 2;
constexpr std::uint32_t grant_period = 100;  // milliseconds
// Under strict binding a copied block discards its source 1 MiB at a time: a small part of the margin.
constexpr Bytes copied_at_once = 1 * MiB;

// ---- Address space: what is mapped, and with which pages.

// The heap grows by 1/32 of its length, up to 64 MiB, and while it is small by 1/2, up to 2 MiB. So a large heap makes
// few system calls, and the slack stays small: mlockall() makes it resident, strict overcommit charges it, and a limit
// on address space counts it.
constexpr Bytes smallest_step = 256 * KiB;
constexpr Bytes small_heap_step = 2 * MiB;
constexpr Bytes largest_step = 64 * MiB;
constexpr Bytes step_after(Bytes used) {
    const Bytes step = max_of(min_of(used / 2, small_heap_step), min_of(used / 32, largest_step));
    return max_of(align_down(step, smallest_step), smallest_step);
}
// A clean end of the heap shorter than 2 MiB stays mapped: it costs only addresses.
constexpr Bytes trimmed_from = 2 * MiB;
// Attempts to map the heap's next step. One may fail because os::mapping_length(), in another thread, maps a page
// behind the heap's end for a moment.
constexpr int tries_to_map = 3;

// Metadata is mapped for 128 MiB of bags at a time, thread heaps 64 KiB at a time, to save system calls.
constexpr Bytes metadata_step = 128 * MiB;
constexpr Bytes thread_heaps_step = 64 * KiB;
// free() looks a pointer up in the class map before it knows that the pointer was allocated, so the map reaches 2 GiB
// of bags beyond the last one.
constexpr Bytes class_map_ahead = 2 * GiB;

// ---- The hardened library.

// It clears 4 KiB of a freed object at most, and checks that part before it hands the object out again.
constexpr Bytes most_cleared = 4 * KiB;
// Each thread's quarantine keeps 256 freed objects of up to 4 KiB and 8 longer ones: 1 MiB and 4 MiB at most.
constexpr Bytes quarantined_large = 4 * KiB;
constexpr std::uint32_t small_in_quarantine = 256;
constexpr std::uint32_t large_in_quarantine = 8;
// The process keeps 32 big objects, each of at most 1/256 of a node's addresses: 1/8 of them in all.
constexpr std::uint32_t big_in_quarantine = 32;
constexpr Bytes quarantined_big_part = 256;

// ---- Huge pages.

// Huge pages are advised, and advised against, in ranges of 64 MiB, because each may be a mapping of its own.
constexpr Bytes huge_stretch = 64 * MiB;
// The first touch of a huge page is timed: of one in 16 for big objects, of each for small ones if at least 512 bytes
// of its beginning are handed out at once. If four such touches in a row take much longer than clearing the page (a
// host had to find the memory), no huge pages are requested for 2,000 ms. Fewer touches prove nothing: by the coarse
// clock a single one may look slow.
constexpr std::uint32_t huge_pages_a_sample = 16;
constexpr Bytes timed_from = 512;
constexpr std::uint32_t dear_in_a_row = 4;
constexpr std::uint32_t dear_for = 2000;
// The first 8 MiB of a node's bags stay on normal pages even where the system says `always`: a small program is not
// charged 2 MiB for each page that it touches.
constexpr Bytes normal_pages_first = 8 * MiB;
// Where the system leaves huge pages to programs, thp=auto requests them beyond the first 64 MiB: a partly used huge
// page is then at most 1/32 of what is resident.
constexpr Bytes normal_pages_unless_asked = 64 * MiB;

}  // namespace numalloc::policy

// The heap's tunable numbers: what it keeps, for how long, how far it searches, how much it does at a time. Any of
// them can change without breaking anything. Each comment gives the meaning, the unit and the reason;
// docs/measurements.md has the measurements.
//
// Numbers that other code depends on (the width of a field, a layout) stand beside that code.
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
// cost 1/5. A class whose tail would be longer gets longer bags, so no size wastes more than 1/5 in all.
constexpr Bytes lost_part = 8;
constexpr Bytes lost_part_of_large = 17;

// Bytes of a batch, and its most objects: one malloc links a whole batch. A thread keeps at most three batches of a
// class.
constexpr Bytes batch_target(Bytes size) { return size <= 512 ? 8 * KiB : 24 * KiB; }
constexpr Bytes most_in_batch = 512;

// Capacity of a ring, in bytes and in lists.
constexpr Bytes ring_target = 128 * KiB;
constexpr unsigned ring_slots = 16;

// ---- Threads: what each may hold, and what its slow paths do for others.

// A thread's first list of a class has 1/8 of a batch, but at least two objects; each further list doubles. A thread
// that uses a class once touches no whole page for it.
constexpr std::uint32_t first_list_part = 8;
constexpr std::uint32_t shortest_list = 2;
// A full list longer than 3/2 of the thread's list length for the class keeps its newest objects. The list may then
// grow by as many again, or by half as many if an older list was flushed.
constexpr std::uint32_t grown_list_part = 2;
constexpr std::uint32_t kept_again_part = 2;

// All lists of a thread may hold 192 KiB at first. The limit doubles after each 64 slow paths, as far as the node
// grants memory: 64 KiB at a time (list_budget.h).
constexpr std::uint32_t slow_paths_to_double = 64;
constexpr std::uint32_t most_doublings = 16;
constexpr Bytes any_may_hold = 192 * KiB;
constexpr Bytes granted_to_lists = 64 * KiB;
// A node's budget for lists while `in_use` bytes of bags are in use. With a smaller budget busy threads flush lists
// and refill them at once: measurements.md, "What lists hold".
constexpr Bytes lists_may_hold(Bytes in_use) { return max_of(20 * MiB, in_use / 32); }
// The lists of a thread near its limit have room for one more object of up to 2 KiB. One of each larger class would
// be a large part of the limit.
constexpr Bytes room_for_one_more = 2 * KiB;
// A thread over its limit flushes idle lists until it holds half of the limit, and lists in use until it holds 7/8.
constexpr Fraction held_without_idle{1, 2};
constexpr Fraction held_by_busy{7, 8};

// Beyond 128 threads of a node batches are halved, beyond 256 halved again, and so on: what all threads hold
// together does not grow with their number.
constexpr std::uint32_t uncrowded = 128;

// The first thread heap checks each pointer of its first 1,000 frees, the n-th those of 1,000 / n: all threads
// together check some thousands. A heap that served another thread before checks 16.
constexpr std::uint32_t frees_to_check = 1000;
constexpr std::uint32_t frees_to_check_again = 16;

// Heaps of ended threads beyond the last heap in use: if there are 64 or more, all but 16 return their memory.
constexpr std::uint32_t kept_unused = 16;
constexpr std::uint32_t most_unused = 64;

// When a node makes a thread heap, it asks of four others whether their threads have died. So no more are lost than
// are made.
constexpr unsigned dead_looked_for = 4;

// Objects of other nodes: a thread holds 64 KiB of them at most, and fetches 4 KiB of a class at a time.
constexpr Bytes remote_budget = 64 * KiB;
constexpr Bytes remote_fetched = 4 * KiB;

// Housekeeping. Every second slow path inspects one size class (a full round takes about 250 slow paths).
constexpr std::uint32_t slow_paths_per_look = 2;
// Every fourth slow path reads the clock, which costs as much as the inspection.
constexpr std::uint32_t slow_paths_per_clock = 4;
// Every 16th slow path adjusts the thread's grant.
constexpr std::uint32_t slow_paths_per_grant = 16;
constexpr std::uint32_t housekeeping_period = 100;  // milliseconds
// A node's own threads drain its rings, since they read each object. Other nodes' threads do so 300 ms after it was
// due.
constexpr std::uint32_t left_to_own_threads = 3 * housekeeping_period;
// A program that allocates little has few slow paths. Each period inspects 1/8 of the classes in any case.
constexpr unsigned classes_a_period = 8;
// Milliseconds between two purges while more is due than one call returns: some 1 GiB a second, at a tenth of a CPU.
constexpr std::uint32_t busy_period = 8;

// ---- Shards.

// The number of shards of a class: one for each CPU, so that no two threads wait for each other. 16 at least,
// because threads in different phases should not mix their objects in one bag.
constexpr unsigned least_shards = 16;
constexpr unsigned most_shards = 128;

// One list in 32 is walked to find an object that was freed twice. The first list of a shard is one of them.
constexpr std::uint32_t lists_per_walk = 32;

// A shard is sparse if less than half of its objects are in use. Objects freed to it go to their bags at once, so
// that bags become empty.
constexpr Fraction sparse_below{1, 2};
// A sparse shard empties its ring each time its objects in use have fallen to 3/4 of what they were.
constexpr Fraction flushed_below{3, 4};
// A thread keeps at most 1/16 of a sparse shard's objects in use: each kept object holds a whole bag.
constexpr std::uint64_t kept_of_sparse = 16;
// A shard of which less than 7/8 is in use serves other shards before these take new memory.
constexpr Fraction spares_below{7, 8};

// With up to three shards (a main thread and two workers) each has a whole ring. More shards share the room of two
// rings.
constexpr unsigned whole_rings = 2;
// From 4 KiB on a list has few objects, so a ring has room for four lists at least. Locks for each malloc and free
// of 16 threads that replace random blocks: .16 with one list, .10 with two, .04 with four.
constexpr Bytes sizes_with_short_lists = 4 * KiB;
constexpr unsigned lists_of_few = 4;

// The ring that all shards of a large class share holds at most 1/6 of the class's bags. Locks for each malloc and
// free of 16 threads that replace large blocks: .09 to .17, and .20 to .32 with 1/8, with the same peaks
// (measurements.md).
constexpr Bytes resting_part = 6;
// A large object may come from one of the two classes above its own, so it is at most half as long again.
constexpr unsigned classes_above = 2;

// malloc_trim() looks into the bags of a shard every 100 ms at most, unless 1/8 of the shard's objects has been
// freed, or has come to use pages again, since the last look. A program that calls it after every operation would
// otherwise fault the same pages in after every call.
constexpr std::uint32_t look_again_after = 100;
constexpr Fraction much_changed{1, 8};
// A refill passes over 16 bags whose free objects are all away, and an adoption over 16 that are being cut.
constexpr unsigned bags_passed_over = 16;
// Where bags may lie on huge pages, malloc_trim() returns pages only of bags of which it can return 1/4: a single
// page would cost 64 MiB their huge pages.
constexpr unsigned returned_of_huge = 4;

// ---- Pages: which free memory stays resident. dirty_limit.h has the rule in which these numbers are used.

// Free memory that may always stay: 4 MiB, and 1/4 of what is in use.
constexpr Bytes dirty_floor = 4 * MiB;
constexpr std::uint64_t dirty_part = 4;
// A taken bag offsets two freed bags, because the use of a program that replaces blocks at random swings. With 1, 2
// and 3, large-blocks/1 has 210, 170 and 132 thousand page faults and amd-numa/8 68, 45 and 42; of a program that
// frees three blocks for each that it takes and then sleeps, nothing, half and everything stays.
constexpr std::uint64_t replaced_for_taken = 2;
// A fall of less than half of what is still in use purges nothing: a program that sleeps then holds half as much
// again as it uses.
constexpr std::uint64_t short_fall_part = 2;
// Free memory beyond twice what is in use goes back even without a fall: a program that frees two blocks for each
// that it takes has none. large-blocks and amd-numa have the same faults with 2 and 3; with 1 large-blocks has twice
// as many.
constexpr std::uint64_t idle_part = 2;
// Of regretted memory 16 MiB may stay without proof, or 1/4 of what is no longer in use.
constexpr Bytes proven_floor = 16 * MiB;
constexpr std::uint64_t proven_part = 4;
// Beside what was in use at most, half as much may stay where holes are too small for the next big object. Without
// it amd-numa has twice the faults.
constexpr std::uint64_t slack_part = 2;
// What was proven counts until the most in use has grown by 1/16.
constexpr std::uint64_t growth_part = 16;

// Pieces freed within 1/8 of purge_delay of each other become one.
constexpr std::int32_t together_part = 8;

// A purge takes 1 MiB more than is due: fewer system calls, and no more than that is lost of what may stay.
constexpr Bytes purged_at_once = 1 * MiB;
// A free purges at most 8 MiB (half a millisecond in the kernel), or twice what it freed.
constexpr Bytes purged_a_call = 8 * MiB;
constexpr std::uint32_t purged_for_freed = 2;
// Milliseconds without a further try after the kernel refused to take pages (mlockall).
constexpr std::uint32_t refusal_lasts = 1000;

// An aligned request tries at most 16 runs that are long enough but may be misaligned, lowest address first. Then it
// takes a run that is longer by the alignment.
constexpr unsigned aligned_tries = 16;

// A shorter piece is copied: that is cheaper than finding the end of its mapping and moving it.
constexpr Bytes shortest_move = 128 * KiB;
// A growing block of 4 MiB or more moves by mremap(): the kernel moves page tables faster than memcpy() moves bytes.
constexpr Bytes move_pages_from = 4 * MiB;
// Moved blocks lie in mappings of their own, and each may split another. The kernel allows a process 65,530.
constexpr std::uint32_t most_moved_mappings = 8192;

// calloc looks at long dirty memory in pieces of 4 MiB, because parts of it may never have been written.
constexpr Bytes long_stretch = 4 * MiB;
// calloc discards dirty memory of 32 MiB or more, instead of clearing it, if most of it is zero. From this length on
// glibc always takes new pages from the kernel.
constexpr Bytes discarded_by_calloc = 32 * MiB;
// Memory counts as used if at least half of it is not zero. Writing to a resident page takes .1 us, faulting it in
// .9 us, discarding it .1 us: below half it is cheaper to discard, since the program will leave it unused again. A
// growing block goes by copy to a place that was used: growing-arrays has 1/4 of the page faults that way.
constexpr Bytes used_part = 2;

// Strict binding takes a node for full when its free memory is the kernel's reserve and 16 MiB: some of it waits on
// CPUs' own lists, and other processes take some between two readings.
constexpr Bytes strict_margin = 16 * MiB;
// One reading of a node's free memory (a text in /sys) serves 8 MiB or 100 ms, so that half of the margin remains
// for others.
constexpr Bytes granted_at_once = strict_margin / 2;
constexpr std::uint32_t grant_period = 100;  // milliseconds
// A copy between nodes returns its source 1 MiB at a time: a small part of the margin.
constexpr Bytes copied_at_once = 1 * MiB;

// ---- Address space: what is mapped, and with which pages.

// The heap grows by 1/32 of its length, while it is small by 1/2: few system calls for a large heap, and little
// slack, which mlockall() makes resident, strict overcommit charges, and a limit on address space counts.
constexpr Bytes smallest_step = 256 * KiB;
constexpr Bytes small_heap_step = 2 * MiB;
constexpr Bytes largest_step = 64 * MiB;
constexpr Bytes step_after(Bytes used) {
    const Bytes step = max_of(min_of(used / 2, small_heap_step), min_of(used / 32, largest_step));
    return max_of(align_down(step, smallest_step), smallest_step);
}
// A clean end of the heap shorter than 2 MiB stays mapped: it costs only addresses.
constexpr Bytes trimmed_from = 2 * MiB;
// Tries to map the heap's next step. A block at the end of the heap that asks the kernel how far its mapping reaches
// is in the way for a moment.
constexpr int tries_to_map = 3;

// Metadata is mapped for 128 MiB of bags at a time, thread heaps 64 KiB at a time.
constexpr Bytes metadata_step = 128 * MiB;
constexpr Bytes thread_heaps_step = 64 * KiB;
// free() looks a pointer up in the class map before it knows that the pointer was allocated: the map reaches 2 GiB
// beyond the last bag.
constexpr Bytes class_map_ahead = 2 * GiB;

// ---- The hardened library.

// It clears 4 KiB of a freed object at most, and checks them before the object is handed out again.
constexpr Bytes most_cleared = 4 * KiB;
// Each thread's quarantine keeps 256 freed objects of up to 4 KiB and 8 longer ones: 1 MiB and 4 MiB at most.
constexpr Bytes quarantined_large = 4 * KiB;
constexpr std::uint32_t small_in_quarantine = 256;
constexpr std::uint32_t large_in_quarantine = 8;
// The process keeps 32 big objects, each of at most 1/256 of a node's addresses: 1/8 of them in all.
constexpr std::uint32_t big_in_quarantine = 32;
constexpr Bytes quarantined_big_part = 256;

// ---- Huge pages.

// Huge pages are advised, and advised against, 64 MiB at a time: each such range may be a mapping of its own.
constexpr Bytes huge_stretch = 64 * MiB;
// The first touch of a huge page is timed: of one in 16 for big objects, of each for small ones if at least 512 bytes
// of its beginning are handed out at once. If four such touches in a row take much longer than clearing the page (a
// host had to find the memory), no huge pages are asked for during the next 2,000 ms. By the coarse clock one touch in
// 15 looks dear by chance, four in a row once in 100 GiB of small objects.
constexpr std::uint32_t huge_pages_a_sample = 16;
constexpr Bytes timed_from = 512;
constexpr std::uint32_t dear_in_a_row = 4;
constexpr std::uint32_t dear_for = 2000;
// The first 8 MiB of a node's bags stay on normal pages even where the system says `always`: a small program is not
// charged 2 MiB for each page that it touches.
constexpr Bytes normal_pages_first = 8 * MiB;
// Where the system leaves huge pages to programs, thp=auto asks for them beyond the first 64 MiB: a partly used huge
// page is then at most 1/32 of what is resident.
constexpr Bytes normal_pages_unless_asked = 64 * MiB;

}  // namespace numalloc::policy

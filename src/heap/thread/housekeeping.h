// Maintenance on threads' slow paths, because the library has no thread of its own: returns idle lists, objects
// and pages, sends other nodes' objects home, and purges. The callers hold no lock.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

namespace policy::housekeeping {

// Every second slow path inspects one size class: a full round takes twice as many slow paths as there are classes.
constexpr std::uint32_t slow_paths_per_look = 2;
// Only every fourth slow path looks what is due by the clock, to save time; every second one while more is due than one
// returns.
constexpr std::uint32_t slow_paths_per_clock = 4;
// Every 16th slow path adjusts the thread's grant, whose lines all threads of the node share.
constexpr std::uint32_t slow_paths_per_grant = 16;
// The cheap slow paths that follow without housekeeping after two within a tick of the clock.
constexpr std::uint32_t cheap_paths_passed = 15;
// Milliseconds between two full rounds: short beside purge_delay, long beside the work of a round.
constexpr std::uint32_t period = 100;
// A node's own threads drain its rings, because draining reads each object. Threads of other nodes drain them when they
// are 300 ms overdue.
constexpr std::uint32_t left_to_own_threads = 3 * period;
// A program that allocates little has few slow paths, so each period inspects 1/8 of the classes as well.
constexpr unsigned classes_part = 8;
// Milliseconds between two purges while more is due than one returns: 8 MiB each are up to 1 GiB a second a heap.
constexpr std::uint32_t busy_period = 8;

}  // namespace policy::housekeeping

// Called inside the fork gate on the slow paths of `h`, the caller's heap: after a refill, a list that was handed over,
// or a free of another node's object. Some calls do a small part of the work.
void housekeeping(ThreadHeap* h);
// The same after a malloc of a list's last object or of a big one. A program may have no other slow path, but in a loop
// they are as cheap as housekeeping: once two follow each other within a tick of the clock, it passes over the next 15.
void housekeeping_after_cheap_path(ThreadHeap* h);
inline void housekeeping_if_rare(ThreadHeap* h) {
    if (h->cheap_paths_to_pass == 0) return housekeeping_after_cheap_path(h);
    --h->cheap_paths_to_pass;
}
// Called outside the fork gate when a thread that ends has returned its heap: drains the node's rings if enough threads
// have ended. The bags that become free purge what is due. A fork waits for one class.
void housekeeping_after_thread(NodeHeap* home);
// Postpones by a period the work on other threads' heaps and on the node: for the child of a fork.
void put_off_housekeeping();

// Sends home the remote caches, of all threads, whose oldest object has waited for `age` milliseconds.
void send_quiet_remote_caches(std::uint32_t age);

// Hands over the lists of the caller's heap, to the bags.
void flush_lists(ThreadHeap* h);
// Requests that all other threads flush their lists at one of their next slow paths. A sleeping thread keeps its lists
// until then.
void ask_others_to_flush();

// Returns all free memory to the system: what malloc_trim() promises. Returns the bytes of bags that were purged.
// Called outside the fork gate: a fork waits for one step of it.
Bytes return_free_memory();

// Set by a floor above: a function that each full round of housekeeping calls, on its thread, without a lock.
extern std::atomic<void (*)()> at_housekeeping;

}  // namespace numalloc

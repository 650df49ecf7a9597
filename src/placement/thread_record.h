// What we know of each thread, and where these records lie: in slabs of our own, because they
// must exist before the first malloc of a thread and after its last free. A record is reused,
// never unmapped: a stale pointer reads an old record, not a hole.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/bits.h"
#include "base/ids.h"
#include "os/affinity.h"
#include "placement/policy.h"

namespace numalloc::placement {

struct ThreadRecord {
    // The node to allocate from; no_node while the thread is not bound: then from where it runs.
    std::atomic<std::uint16_t> home{no_node.value};
    // Where it runs as long as nobody moves it behind our back: the kernel's number.
    std::atomic<std::uint16_t> os_node{0};
    PlaceId place = no_place;  // where it counts as a thread; no_place: nowhere
    bool bound = false;        // its affinity in the kernel is narrower than the user's: hide it
    bool starting = false;     // created, but its first instruction has not run
    bool mask_from_attr = false;
    bool inherits_ours = false;  // it starts with its creator's binding
    unsigned number = 0;         // in order of creation; main is 0
    int owner = 0;               // the same, or what the thread calls itself: see owners.h
    int tid = 0;                 // 0 while starting, and for good after a filter (os/filter.h)
    pthread_t handle{};
    std::uint64_t generation = 0;  // tells this thread from a later one in the same record

    // A thread often starts the next worker when the last has ended. The next one then runs on the node of the first
    // that ended: its memory lies there.
    ThreadRecord* creator = nullptr;  // as long as it has that generation
    std::uint64_t creator_generation = 0;
    unsigned children = 0;  // that have not ended
    Vacated vacated;        // of the first that was started while no other ran

    // What the trampoline needs.
    pthread_t* handle_out = nullptr;
    void (*start)() = nullptr;  // the user's function, cast
    void* argument = nullptr;

    ThreadRecord* next = nullptr;
    ThreadRecord* previous = nullptr;

    // The affinity the user gave, Records::words() words of it. Not the kernel's while `bound`.
    std::uint64_t* user_mask() { return reinterpret_cast<std::uint64_t*>(this + 1); }
    const std::uint64_t* user_mask() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
};

// All records. Not thread-safe: placement's lock covers it.
class Records {
public:
    // `words`: 64-bit words in a mask of this kernel. Before any other call.
    void start(unsigned words) { words_ = words; }
    unsigned words() const { return words_; }

    // A record in the list of live ones, with an empty mask; nullptr when the OS has no memory.
    ThreadRecord* take();
    void give(ThreadRecord* record);

    ThreadRecord* find(int tid) const;
    ThreadRecord* find(pthread_t handle) const;
    ThreadRecord* first() const { return live_; }

private:
    ThreadRecord* fresh();

    char* slab_ = nullptr;  // what is left of the newest slab
    Bytes slab_left_ = 0;
    unsigned words_ = 1;
    ThreadRecord* live_ = nullptr;
    ThreadRecord* free_ = nullptr;
};

}  // namespace numalloc::placement

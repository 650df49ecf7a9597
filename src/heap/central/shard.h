// What the threads that have a shard of a class's bags use together: the bags, what is left of them,
// and the ring of lists that they hand over. Threads of different shards meet in the page heap only.
//
//   shard \ class    1       2       3   ...      a page has twelve classes of one shard: a process
//     0            [ . ]   [ . ]   [ . ]          of few threads touches few pages
//     1            [ . ]   [ . ]   [ . ]
//
// Zero pages are valid: nothing is constructed, and what nobody uses costs no memory.
#pragma once

#include "heap/central/ring.h"
#include "os/lock.h"

namespace numalloc {

// Into how many shards a class's bags are divided: threads beyond so many have one together.
constexpr unsigned most_shards = 16;

struct alignas(64) Shard {
    os::Lock<os::LockRank::size_class> lock;
    std::uint32_t lists_put = 0;          // one in so many is walked
    std::uint32_t partial = no_bag;       // bags with freed objects, the fullest first
    std::uint32_t last_partial = no_bag;
    std::uint32_t carving = no_bag;       // the bag whose never-used rest is handed out
    std::uint32_t bags = 0;
    std::uint64_t taken = 0;              // objects outside of the shard's bags
    std::uint64_t flush_below = 0;        // sparse: empty the ring when `taken` falls to this
    Ring ring;

    // For drain(): resting if nothing came or went since it last came by, drained if nothing is left to
    // be drained. Read without the lock, so that it does not touch what nobody uses.
    enum State : std::uint8_t { drained, used, resting };
    State state() const { return __atomic_load_n(&state_, __ATOMIC_RELAXED); }
    void set(State state) { __atomic_store_n(&state_, state, __ATOMIC_RELAXED); }

private:
    State state_ = drained;
};
static_assert(no_bag == 0, "zero pages would name a bag");

// Of all classes of one node.
struct Shards {
    // Before a thread has it.
    void open(unsigned shard) { __atomic_fetch_or(&opened_, 1U << shard, __ATOMIC_RELEASE); }
    // Threads without a heap have shard 0.
    bool is_open(unsigned shard) const { return (opened() >> shard & 1) != 0; }
    unsigned count() const { return static_cast<unsigned>(__builtin_popcount(opened())); }

    Shard& at(unsigned shard, ClassId c) { return of_[shard][c.value]; }

private:
    std::uint32_t opened() const { return __atomic_load_n(&opened_, __ATOMIC_ACQUIRE) | 1; }

    std::uint32_t opened_ = 0;
    Shard of_[most_shards][class_count];
};

}  // namespace numalloc

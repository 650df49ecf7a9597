// Returns pages of bags in use on which every object is free, as malloc_trim() does, when more of the bags is free than
// in use: a program that moves on to other sizes leaves bags behind in which a few objects live on, and no other class
// can use the rest.
//
//   waits      until the bags have grown to due_at_
//   counts     the objects in use, some classes a step. Ends if they are at least half of the bags
//   looks      at the bags of one class after the other (ClassHeap::go_on()), some bags a step
//   ends       with due_at_ = there + max(there / 8, 4 MiB, half of the free memory that stayed) + regretted
//
// So a sweep is paid for by growth: of an eighth, and where objects were freed at random, so that it finds no free
// page, of half of what it looked at. A program that uses the same sizes again and again must not pay page faults each
// time: if a quarter of the growth since a sweep was pages that came back, these are regretted, and twice as much more
// may stay from then on. After each sweep that was not regretted it is half as much.
//
// Bags on huge pages are passed over: the first 64 MiB of a node's memory lie on normal ones, and all where huge pages
// are off or dear.
//
// Threads of the node make the steps, in their housekeeping. Bytes are of bags, less objects away: Shards::there().
#pragma once

#include "base/bit_set.h"
#include "heap/central/class_heap.h"

namespace numalloc {

class Sweep {
public:
    // Sweeps begin with this call. A heap that never purges (-1) is not swept. May be called again later.
    void set_purge_delay(std::int32_t delay);

    // Whether step() has something to do. `there`: the bytes of bags now.
    bool is_due(Bytes there) const { return there >= due_at_.load(std::memory_order_relaxed); }
    // Makes the next step, unless another thread is making one. The caller holds no lock. `now`: milliseconds.
    void step(Shards& shards, PageHeap& pages, std::uint32_t now);

private:
    static constexpr Bytes never = ~Bytes{0};

    void count(Shards& shards, PageHeap& pages);
    void look(Shards& shards, PageHeap& pages, std::uint32_t now);
    void begin(const Shards& shards);
    void end(const Shards& shards, Bytes stayed);

    // 0 during a sweep.
    std::atomic<Bytes> due_at_{never};
    std::atomic<bool> allowed_{false};
    std::atomic<bool> busy_{false};  // a thread makes a step: the rest is for that thread

    bool looks_ = false;
    unsigned class_ = 1;  // the next one
    Bytes in_use_ = 0, free_ = 0, returned_ = 0;
    BitSet<(class_count + 63) / 64 * 64> sparse_;  // classes to look at
    Bytes there_after_ = 0, back_after_ = 0;       // when the last sweep ended
    Bytes regretted_ = 0;
    Look look_;
};

}  // namespace numalloc

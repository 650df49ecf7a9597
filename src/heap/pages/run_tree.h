// The free runs of one node by address, each with the length of the longest run in its subtree: first fit, lowest
// address first. A treap whose nodes are the runs' own entries in the bag table. The priority of a run is a hash of its
// index, so the tree needs no memory of its own. Every call takes O(log n) expected steps for n runs.
//
//   longest(r) == max(told(length)) over the subtree of r       in three spare bytes of the entry
//   told(n)    == n below 2^23; from 2^23 on (256 GiB), 2^23 + (n - 2^23) / 64 < 2^24
//
// So find() may overlook a run of 256 GiB or more that is less than 2 MiB longer than requested. First fit keeps the
// memory in use at the low end, and large holes whole.
//
// Not thread-safe: the page heap's lock guards it.
#pragma once

#include "heap/pages/step_count.h"
#include "heap/space/address_space.h"

namespace numalloc {

class RunTree {
public:
    void attach(Bag* bags) { bags_ = bags; }

    void insert(BagIndex run);
    void remove(BagIndex run);
    // The lowest run of at least `bags` bags that begins at or after `from`, or no_bag. It stays in the tree.
    BagIndex find(std::uint32_t bags, BagIndex from = no_bag) const;
    // The run that contains `b`, if `b` is free: the last run that begins at or below it.
    BagIndex at_or_below(BagIndex b) const;

    // Two rounds: after one, runs at some regular distances would get sorted priorities, and the tree would be a list.
    // A program can still choose what it frees so that this happens, but it slows down only its own process.
    static std::uint32_t priority(BagIndex run) {
        std::uint64_t x = (std::uint64_t{run.value} + 1) * 0x9E3779B97F4A7C15U;
        x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93U;
        return static_cast<std::uint32_t>(x >> 32);
    }

    // Debug builds: checks order, priorities and lengths of the whole tree. Returns the number of runs.
    std::uint32_t validate() const { return validate(root_); }

private:
    static constexpr std::uint32_t told_exactly = 1U << 23;
    static constexpr std::uint32_t step = 64;
    static constexpr std::uint32_t told(std::uint32_t bags) {
        return bags < told_exactly ? bags : told_exactly + (bags - told_exactly) / step;
    }
    static_assert(told_exactly + (most_bags - told_exactly) / step < 1U << 24);

    Bag& bag(BagIndex b) const {
        count_step();
        return bags_[b.value];
    }
    std::uint32_t longest(BagIndex run) const {
        if (run == no_bag) return 0;
        const Bag& b = bag(run);
        return b.taken | std::uint32_t{b.class_id} << 16;
    }
    void set_longest(BagIndex run, std::uint32_t bags) {
        Bag& b = bag(run);
        b.taken = static_cast<std::uint16_t>(bags);
        b.class_id = static_cast<std::uint8_t>(bags >> 16);
    }
    std::uint32_t longest_of(BagIndex run) const {
        const Bag& b = bag(run);
        return max_of(max_of(longest(b.free.left), longest(b.free.right)), told(b.run));
    }
    BagIndex towards(BagIndex run, BagIndex from) const {
        return run < from ? bag(from).free.left : bag(from).free.right;
    }
    void look_again(BagIndex from, BagIndex run);
    std::uint32_t validate(BagIndex node) const;

    Bag* bags_ = nullptr;
    BagIndex root_;
};

}  // namespace numalloc

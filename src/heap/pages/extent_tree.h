// The free runs of one node by address, each with the longest run below it: first fit, lowest address
// first, in O(log n). A treap whose nodes are the runs' own entries in the bag table; the priority of
// a run is a hash of its index, so nothing is stored for it.
//
//   longest(r) == max(told(length)) over the subtree of r       in three spare bytes of the entry
//   told(n)    == n below 2^23; from 2^23 on (256 GiB), 2^23 + (n - 2^23) / 16 < 2^24
//
// So find() may overlook a run of 256 GiB that is less than 512 KiB longer than what is wanted.
// First fit keeps what is in use at the low end, and large holes whole: against the shortest run that is
// long enough, amd-numa had less than half of the page faults and 0.9 of the peak.
//
// Not thread-safe: the page heap's lock guards it.
#pragma once

#include "heap/space/address_space.h"

namespace numalloc {

class ExtentTree {
public:
    void attach(Bag* bags) { bags_ = bags; }

    void insert(std::uint32_t run);
    void remove(std::uint32_t run);
    // The run of at least `bags` bags with the lowest address, or no_bag. It stays in the tree.
    std::uint32_t find(std::uint32_t bags) const;

    // Two rounds: after one, runs at distances that divide the constant well would line up as a list. A program
    // can still choose what it frees so that they do; it makes its own mallocs slow, no more.
    static std::uint32_t priority(std::uint32_t run) {
        std::uint64_t x = (run + 1) * 0x9E3779B97F4A7C15U;
        x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93U;
        return static_cast<std::uint32_t>(x >> 32);
    }

    // Debug builds: order, priorities and lengths of the whole tree. The number of runs.
    std::uint32_t validate() const { return validate(root_); }

private:
    static constexpr std::uint32_t told_exactly = 1U << 23;
    static constexpr std::uint32_t step = 16;
    static constexpr std::uint32_t told(std::uint32_t bags) {
        return bags < told_exactly ? bags : told_exactly + (bags - told_exactly) / step;
    }
    static_assert(told_exactly + (most_bags - told_exactly) / step < 1U << 24);

    std::uint32_t longest(std::uint32_t run) const {
        return run == no_bag ? 0 : bags_[run].taken | std::uint32_t{bags_[run].class_id} << 16;
    }
    void set_longest(std::uint32_t run, std::uint32_t bags) {
        bags_[run].taken = static_cast<std::uint16_t>(bags);
        bags_[run].class_id = static_cast<std::uint8_t>(bags >> 16);
    }
    std::uint32_t longest_of(std::uint32_t run) const {
        const Bag& b = bags_[run];
        return max_of(max_of(longest(b.extent.left), longest(b.extent.right)), told(b.run));
    }
    std::uint32_t towards(std::uint32_t run, std::uint32_t from) const {
        return run < from ? bags_[from].extent.left : bags_[from].extent.right;
    }
    void look_again(std::uint32_t from, std::uint32_t run);
    std::uint32_t validate(std::uint32_t node) const;

    Bag* bags_ = nullptr;
    std::uint32_t root_ = no_bag;
};

}  // namespace numalloc

// The free runs of one node, ordered by length and then by address: best fit, lowest address
// first, in O(log n). A treap whose nodes are the runs' own entries in the bag table; the
// priority of a run is a hash of its index, so nothing is stored for it.
//
// Not thread-safe: the big heap's lock guards it.
#pragma once

#include "heap/space/bag.h"

namespace numalloc {

class ExtentTree {
public:
    void attach(Bag* bags) { bags_ = bags; }

    void insert(std::uint32_t run);
    void remove(std::uint32_t run);
    // The shortest run of at least `bags` bags, or no_bag. It stays in the tree.
    std::uint32_t find(std::uint32_t bags) const;
    // The longest run, or no_bag.
    std::uint32_t longest() const;

    // Debug builds: order, priorities and lengths of the whole tree. The number of runs.
    std::uint32_t validate() const { return validate(root_); }

private:
    static std::uint32_t priority(std::uint32_t run) {
        std::uint64_t x = run * 0x9E3779B97F4A7C15U;
        return static_cast<std::uint32_t>(x >> 32);
    }
    bool before(std::uint32_t a, std::uint32_t b) const {
        return bags_[a].run != bags_[b].run ? bags_[a].run < bags_[b].run : a < b;
    }
    std::uint32_t validate(std::uint32_t node) const;

    Bag* bags_ = nullptr;
    std::uint32_t root_ = no_bag;
};

}  // namespace numalloc

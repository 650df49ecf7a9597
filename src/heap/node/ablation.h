// Options of experiments that switch a mechanism off or make it smaller, to measure its gain (docs/measurements.md).
// Only slow paths call these functions; in a build without experiments every answer is a constant.
// incremental_sharing=0 is in pages/own_pages.cpp.
#pragma once

#include "base/experiments.h"
#include "heap/node/node_heap.h"

namespace numalloc {

struct Ablations {
    bool origin_free = true;          // objects of other nodes return to their node when they are freed
    bool remote_batching = true;      // they return in batches, not one by one
    Bytes hand_over = 25 * KiB;       // most bytes of a batch
    bool incremental_sharing = true;  // threads and classes share huge pages, bag by bag
};

class Mechanisms {
public:
    // Only in builds with experiments. Called before any other function.
    void start(const Ablations& said, unsigned nodes);

    // Most objects of a batch, the unit that lists, rings and bags exchange.
    std::uint32_t batch(ClassId c) const { return experiments ? batch_[c.value] : shape_of(c).batch; }
    // Most objects of a class that return to another node together.
    std::uint32_t remote_batch(ClassId c) const { return !experiments || said_.remote_batching ? batch(c) : 1; }

    // Whether an object of `owner` enters the lists of `home`'s threads. Objects of the interleaved heap enter only the
    // lists of its own threads.
    bool keeps(const NodeHeap* owner, const NodeHeap* home) const {
        return owner == home || (keeps_others() && owner->node.value < nodes_);
    }
    // Whether lists may hold other nodes' objects.
    bool keeps_others() const { return experiments && !said_.origin_free; }
    // The objects of `list` that belong to `home`. Returns the others to their own nodes' bags.
    Batch own_of(Batch list, ClassId c, const NodeHeap* home) const {
        if constexpr (experiments)
            if (keeps_others()) return send_others(list, c, home);
        return list;
    }

    // Number of owners with huge pages of their own: 0, or one for each shard of a class.
    std::uint32_t page_owners() const { return !experiments || said_.incremental_sharing ? 0 : ClassHeap::page_owners; }

private:
    static Batch send_others(Batch list, ClassId c, const NodeHeap* home);

    Ablations said_;
    unsigned nodes_ = 0;
    std::uint16_t batch_[class_count] = {};
};

}  // namespace numalloc

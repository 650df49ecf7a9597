// The experiments: options that switch a mechanism off or make it smaller, to measure what it gains
// (docs/measurements.md), and all that they decide. Asked on slow paths only; without experiments every answer is a
// constant. What incremental_sharing=0 does is in pages/own_pages.cpp.
#pragma once

#include "base/experiments.h"
#include "heap/process/node_heap.h"

namespace numalloc {

struct Ablations {
    bool origin_free = true;          // other nodes' objects go home when they are freed
    bool remote_batching = true;      // many at a time
    Bytes hand_over = 24 * KiB;       // most bytes of a batch
    bool incremental_sharing = true;  // threads and classes share huge pages, a bag at a time
};

class Mechanisms {
public:
    // Only with experiments; before any other call.
    void start(const Ablations& said, unsigned nodes);

    // Most objects of a batch, the unit of hand-over.
    std::uint32_t batch(ClassId c) const { return experiments ? batch_[c.value] : shape_of(c).batch; }
    // Objects of a class that return to another node together.
    std::uint32_t remote_batch(ClassId c) const { return !experiments || said_.remote_batching ? batch(c) : 1; }

    // Whether an object of `owner` enters the lists of threads of `home`; of the interleaved heap none does but at
    // home.
    bool keeps(const NodeHeap* owner, const NodeHeap* home) const {
        return owner == home || (keeps_others() && owner->node.value < nodes_);
    }
    // So lists may hold other nodes' objects.
    bool keeps_others() const { return experiments && !said_.origin_free; }
    // What of a thread's list is of its home. The rest is sent home.
    Batch own_of(Batch list, ClassId c, const NodeHeap* home) const {
        if constexpr (experiments)
            if (keeps_others()) return send_others(list, c, home);
        return list;
    }

    // Who has huge pages of its own: nobody, or each shard of a class.
    std::uint32_t page_owners() const { return !experiments || said_.incremental_sharing ? 0 : ClassHeap::page_owners; }

private:
    static Batch send_others(Batch list, ClassId c, const NodeHeap* home);

    Ablations said_;
    unsigned nodes_ = 0;
    std::uint16_t batch_[class_count] = {};
};

}  // namespace numalloc

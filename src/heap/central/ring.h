// The circular array of batches of a class (paper 3.5; one for each shard of it here: shard.h):
// threads hand over whole linked lists and take whole ones, so nothing is traversed and the lock is held
// for moments.
//
//   slots   [ . . | oldest ... newest | . ]
//                   first                first + filled (mod ring_slots)
//
// The newest list is taken first (its objects may still be in a cache), the oldest leaves first when the
// ring is full. Zero pages are an empty ring.
#pragma once

#include "base/check.h"
#include "heap/space/bag.h"
#include "heap/space/size_class.h"

namespace numalloc {

// A linked list of free objects of one class, ended by nullptr.
struct Batch {
    Object* head = nullptr;
    std::uint32_t count = 0;
};

class Ring {
public:
    bool empty() const { return filled_ == 0; }
    unsigned size() const { return filled_; }
    std::uint32_t objects() const { return objects_; }

    void push(Batch list) {
        NUMALLOC_ASSERT(filled_ < ring_slots);
        at(filled_) = list;
        ++filled_;
        objects_ += list.count;
    }
    Batch pop_newest() {
        if (filled_ == 0) return {};
        --filled_;
        const Batch list = at(filled_);
        objects_ -= list.count;
        return list;
    }
    Batch pop_oldest() {
        const Batch list = slots_[first_];
        first_ = static_cast<std::uint8_t>((first_ + 1) % ring_slots);
        --filled_;
        objects_ -= list.count;
        return list;
    }

private:
    Batch& at(unsigned i) { return slots_[(first_ + i) % ring_slots]; }

    Batch slots_[ring_slots];
    std::uint32_t objects_ = 0;
    std::uint8_t first_ = 0;
    std::uint8_t filled_ = 0;
};

}  // namespace numalloc

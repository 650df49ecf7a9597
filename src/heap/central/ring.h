// The circular array of sub-lists of a class (paper 3.5; one for each share of it here: class_share.h):
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
struct SubList {
    Object* head = nullptr;
    std::uint32_t count = 0;
};

class BatchRing {
public:
    bool empty() const { return filled_ == 0; }
    unsigned size() const { return filled_; }
    std::uint32_t objects() const { return objects_; }

    void push(SubList list) {
        NUMALLOC_ASSERT(filled_ < ring_slots);
        at(filled_) = list;
        ++filled_;
        objects_ += list.count;
    }
    SubList pop_newest() {
        if (filled_ == 0) return {};
        --filled_;
        const SubList list = at(filled_);
        objects_ -= list.count;
        return list;
    }
    SubList pop_oldest() {
        const SubList list = slots_[first_];
        first_ = static_cast<std::uint8_t>((first_ + 1) % ring_slots);
        --filled_;
        objects_ -= list.count;
        return list;
    }

private:
    SubList& at(unsigned i) { return slots_[(first_ + i) % ring_slots]; }

    SubList slots_[ring_slots];
    std::uint32_t objects_ = 0;
    std::uint8_t first_ = 0;
    std::uint8_t filled_ = 0;
};

}  // namespace numalloc

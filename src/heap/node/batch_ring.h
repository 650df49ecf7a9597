// The circular array of sub-lists of a node and class (paper 3.5): threads hand over whole
// linked lists and take whole ones, so nothing is traversed and the lock is held for moments.
//
//   slots   [ . . | oldest ... newest | . ]
//                   first                first + filled (mod ring_slots)
//
// The newest list of a share is taken first (its objects may still be in a cache; class_heap.h
// says what a share is), the oldest leaves first when the ring is full.
#pragma once

#include "base/check.h"
#include "heap/space/bag.h"
#include "heap/space/size_class.h"

namespace numalloc {

// A linked list of free objects of one class, ended by nullptr.
struct SubList {
    Object* head = nullptr;
    std::uint32_t count = 0;
    std::uint8_t share = 0;
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
    bool has(unsigned share) const {
        for (unsigned i = 0; i < filled_; ++i)
            if (slots_[(first_ + i) % ring_slots].share == share) return true;
        return false;
    }
    // An empty list where the share has none here.
    SubList pop_newest(unsigned share) {
        if (filled_ == 0) return {};
        return at(filled_ - 1U).share == share ? remove(filled_ - 1U) : pop_below_newest(share);
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

    // Out of line: seldom, and the usual case is counted in instructions.
    [[gnu::noinline]] SubList pop_below_newest(unsigned share) {
        for (unsigned i = filled_ - 1U; i-- > 0;)
            if (at(i).share == share) return remove(i);
        return {};
    }

    // The newer ones move down.
    SubList remove(unsigned i) {
        const SubList list = at(i);
        for (unsigned k = i; k + 1U < filled_; ++k) at(k) = at(k + 1);
        --filled_;
        objects_ -= list.count;
        return list;
    }

    SubList slots_[ring_slots];
    std::uint32_t objects_ = 0;
    std::uint8_t first_ = 0;
    std::uint8_t filled_ = 0;
};

}  // namespace numalloc

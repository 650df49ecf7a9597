// The circular array of batches of a class (NUMAlloc, 3.5; here one for each shard, and one for all: shard.h). Threads
// put whole linked lists into it and take whole lists.
//
//   slots   [ . . | oldest ... newest | . ]
//
// A slot is one word, a batch or nothing, and each list comes and goes by one exchange of it. So there is no lock and
// no retry, and a list belongs to one thread at any time. `newest_` is a hint that threads overwrite: the order is
// exact for one thread at a time and good enough for more. The newest list is taken first (its objects may still be in
// a cache), and the oldest is displaced when the ring is full. Zeroed pages are an empty ring.
#pragma once

#include <atomic>

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
    // `room`: how many slots may be in use, at least 1. Returns the oldest list if it was displaced, else an empty one.
    Batch push(Batch list, unsigned room) {
        unsigned i = newest_.load(std::memory_order_relaxed) + 1U;
        if (i >= room) i = 0;
        newest_.store(static_cast<std::uint8_t>(i), std::memory_order_relaxed);
        return unpack(slots_[i].exchange(pack(list), std::memory_order_acq_rel));
    }
    // Merges the newest list with this one if both together have at most `most` objects. false: nothing has changed.
    // Walks over `list`. Another thread may take the newest list and put it back in between; the merge is right as long
    // as the slot has the same head again.
    bool join(Batch list, std::uint32_t most) {
        std::atomic<std::uint64_t>& slot = slots_[newest_.load(std::memory_order_relaxed)];
        std::uint64_t word = slot.load(std::memory_order_relaxed);
        const Batch newest = unpack(word);
        if (newest.head == nullptr || newest.count + list.count > most) return false;
        Object* last = list.head;
        while (last->next != nullptr) last = last->next;
        last->next = newest.head;
        const std::uint64_t both = pack({list.head, list.count + newest.count});
        if (slot.compare_exchange_strong(word, both, std::memory_order_acq_rel, std::memory_order_relaxed)) return true;
        last->next = nullptr;
        return false;
    }
    Batch pop_newest() {
        const unsigned newest = newest_.load(std::memory_order_relaxed);
        for (unsigned k = 0; k < policy::rings::slots; ++k) {
            const unsigned i = (newest - k) % policy::rings::slots;
            if (slots_[i].load(std::memory_order_relaxed) == 0) continue;
            const Batch list = unpack(slots_[i].exchange(0, std::memory_order_acq_rel));
            if (list.head == nullptr) continue;  // another thread was here
            newest_.store(static_cast<std::uint8_t>((i - 1) % policy::rings::slots), std::memory_order_relaxed);
            return list;
        }
        return {};
    }

    unsigned size() const {
        unsigned lists = 0;
        for (const auto& slot : slots_) lists += slot.load(std::memory_order_relaxed) != 0;
        return lists;
    }
    bool empty() const { return size() == 0; }
    std::uint32_t objects() const {
        std::uint32_t sum = 0;
        for (const auto& slot : slots_) sum += unpack(slot.load(std::memory_order_relaxed)).count;
        return sum;
    }

private:
    // Objects' addresses are multiples of 16, below 2^48.
    static constexpr unsigned count_bits = 20;
    static std::uint64_t pack(Batch list) { return address_of(list.head) >> granule_shift << count_bits | list.count; }
    static Batch unpack(std::uint64_t word) {
        return {reinterpret_cast<Object*>(word >> count_bits << granule_shift),
                static_cast<std::uint32_t>(word & ((1U << count_bits) - 1))};
    }

    std::atomic<std::uint64_t> slots_[policy::rings::slots] = {};
    std::atomic<std::uint8_t> newest_{0};
};

}  // namespace numalloc

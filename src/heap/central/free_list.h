// The freed objects of a bag, in one word: the newest, their number, and the bag's shard.
//
//   | shard: 8 | count: 12 | address of the newest / 16: 44 |
//
// So a thread frees objects into a bag without a lock: it links them in front and exchanges the word. Only one thread
// at a time takes objects: the one that holds the shard's lock, or has marked the bag as being cut under that lock.
// Hence an unchanged word leads to the same objects (no ABA), because freed objects only come in front of them. A bag
// changes its shard in the same word: a thread that frees counts the objects for the shard at that moment.
#pragma once

#include "base/atomic.h"
#include "heap/space/bag.h"
#include "heap/space/size_class.h"

namespace numalloc {

class FreeList {
public:
    FreeList(Object* newest, std::uint32_t count, unsigned shard)
        : word_(address_of(newest) >> granule_shift | std::uint64_t{count} << count_shift |
                std::uint64_t{shard} << shard_shift) {}
    static FreeList of(const Bag& bag) { return FreeList(load_acquire(bag.small.freed)); }

    // The list with `more` objects in front, of which `newest` is the first.
    FreeList with(Object* newest, std::uint32_t more) const {
        FreeList longer(*this);
        longer.word_ =
            (word_ & ~address_mask) + (std::uint64_t{more} << count_shift) + (address_of(newest) >> granule_shift);
        return longer;
    }
    Object* newest() const { return reinterpret_cast<Object*>((word_ & address_mask) << granule_shift); }
    std::uint32_t count() const {
        return static_cast<std::uint32_t>(word_ >> count_shift) & ((1U << (shard_shift - count_shift)) - 1);
    }
    unsigned shard() const { return static_cast<unsigned>(word_ >> shard_shift); }

    // Stores `next` in the bag if the bag still holds this list. Otherwise this becomes the bag's current list.
    bool exchange(Bag& bag, FreeList next) { return compare_exchange(bag.small.freed, word_, next.word_); }
    // For a bag that no other thread uses.
    void put_into(Bag& bag) const { store_release(bag.small.freed, word_); }

private:
    explicit FreeList(std::uint64_t word) : word_(word) {}

    static constexpr unsigned count_shift = 44;
    static constexpr unsigned shard_shift = 56;
    static constexpr std::uint64_t address_mask = (std::uint64_t{1} << count_shift) - 1;
    static_assert(bag_bytes / granule < 1U << (shard_shift - count_shift));

    std::uint64_t word_;
};

// The shard of a small bag. It may change at any time unless the shard's lock is held.
inline unsigned shard_of(const Bag& bag) { return FreeList::of(bag).shard(); }

}  // namespace numalloc

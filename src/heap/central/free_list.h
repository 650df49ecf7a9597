// The freed objects of a bag, in one word: the newest, how many there are, and the shard whose bag it is.
//
//   | shard: 8 | count: 12 | address of the newest / 16: 44 |
//
// So a thread gives objects back without a lock: it links them in front and exchanges the word. Objects are
// taken by one at a time only: by who holds the shard's lock, or has marked the bag as being cut under it. Hence a word
// that looks as before leads to the same objects (no ABA), for what is given lies in front of them. A bag changes
// its shard in the same word: whoever gives knows whose the bag was at that moment, and counts it there.
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

    // `more` objects in front of these, of which `newest` is the first.
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

    // Puts `next` into the bag if this is still there. Else this becomes what is there.
    bool exchange(Bag& bag, FreeList next) { return compare_exchange(bag.small.freed, word_, next.word_); }
    // Of a bag that nobody else has.
    void put_into(Bag& bag) const { store_release(bag.small.freed, word_); }

private:
    explicit FreeList(std::uint64_t word) : word_(word) {}

    static constexpr unsigned count_shift = 44;
    static constexpr unsigned shard_shift = 56;
    static constexpr std::uint64_t address_mask = (std::uint64_t{1} << count_shift) - 1;
    static_assert(bag_bytes / granule < 1U << (shard_shift - count_shift));

    std::uint64_t word_;
};

// The shard of a small bag. It may be another's as soon as it is read, unless its lock is held.
inline unsigned shard_of(const Bag& bag) { return FreeList::of(bag).shard(); }

}  // namespace numalloc

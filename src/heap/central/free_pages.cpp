// malloc_trim() looks at the bags of all classes that have changed since its last call, one bag after the other, and
// returns their free pages. take_back() gives refills objects that are away.
#include "heap/central/free_pages.h"

#include "heap/pages/growth.h"

namespace numalloc {

namespace policy::trim {

// malloc_trim() inspects a shard's bags within look_again_after if 1/8 of its objects have been freed, or use pages
// again, since the last time: then a large part of the shard may be returned.
constexpr Fraction much_changed{1, 8};

}  // namespace policy::trim

class ClassHeap::TrimLook {
public:
    explicit TrimLook(ClassHeap& heap) : heap_(heap), shape_(heap.shape()), pages_(heap, false) {}

    // Looks once at each bag that the shard has now. It may miss some if other threads take from them at the same time.
    void look_at(unsigned shard, std::uint32_t now) {
        BagIndex first_back = no_bag;
        std::uint32_t left = begin(shard, now);
        bool all_gone = true;
        while (!refused()) {
            // A fork's child would lose the bag at work.
            const os::Inside inside;
            all_gone = all_gone && inside;
            if (!inside || !pick(shard, first_back, left)) break;
            pages_.return_pages();
            refusals_ = pages_.all_gone() ? 0 : refusals_ + 1;
            all_gone = all_gone && pages_.all_gone();
            finish();
        }
        if (!all_gone) forget(shard);
    }
    Bytes returned() const { return pages_.returned(); }
    // Whether the system takes no pages, because all memory is locked.
    bool refused() const { return refusals_ >= most_refusals; }

private:
    // The number of bags to look at: 0 if no object came or went since the last look, or if that was a moment ago and
    // little has changed since.
    std::uint32_t begin(unsigned number, std::uint32_t now) {
        Held held(heap_);
        held.hold(number);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        const std::uint64_t taken = shard.taken.load(std::memory_order_relaxed);
        const std::uint64_t fetched = shard.fetched.load(std::memory_order_relaxed);
        if (shard.looked_at_taken == taken && shard.looked_at_fetched == fetched) return 0;
        const std::uint32_t bags = shard.bags.load(std::memory_order_relaxed);
        const std::uint64_t much = policy::trim::much_changed.part_of(std::uint64_t{bags} * shape_.objects);
        const bool little = taken + much > shard.looked_at_taken && shard.came_here < much;
        if (now - shard.looked_at < policy::trim::look_again_after && little) return 0;
        shard.looked_at = now;
        shard.came_here = 0;
        shard.looked_at_taken = taken;
        shard.looked_at_fetched = fetched;
        return bags;
    }
    // The next call looks at the shard in any case.
    void forget(unsigned number) {
        Held held(heap_);
        held.hold(number);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        shard.looked_at_fetched = ~std::uint64_t{0};
    }

    // Finds the next bag with newly freed objects and takes them all. Moves the bags that it looked at to the end of
    // the list.
    bool pick(unsigned number, BagIndex& first_back, std::uint32_t& left) {
        while (left > 0) {
            Held held(heap_);
            held.hold(number);
            Shard& shard = held.shard();
            shard.lock.assert_held();
            for (unsigned i = 0; i < bags_a_lock && left > 0; ++i) {
                const BagIndex b = shard.partial;
                if (b == no_bag) return false;
                Bag& bag = heap_.bag(b);
                FreeList freed = FreeList::of(bag);
                const bool nothing_new =
                    load_acquire(bag.small.being_cut) || freed.count() == 0 || freed.count() == bag.small.looked_at;
                // A free may have moved it to the front again.
                if (b == first_back && nothing_new) return false;
                if (first_back == no_bag) first_back = b;
                --left;
                heap_.unlist(shard, b);
                heap_.enlist_last(shard, b);
                if (nothing_new) continue;
                pages_.take_freed(shard, b, shape_.objects);
                return true;
            }
        }
        return false;
    }
    void finish() {
        Emptied emptied;
        {
            Held held(heap_);
            held.hold_shard_of(heap_.bag(pages_.bag()));
            held.shard().lock.assert_held();
            pages_.put_back(held.shard(), emptied);
        }
        heap_.give(emptied);
    }

    static constexpr unsigned bags_a_lock = 16;
    static constexpr unsigned most_refusals = 8;  // bags in a row

    ClassHeap& heap_;
    const ClassShape& shape_;
    FreePages pages_;
    unsigned refusals_ = 0;
};

Bytes ClassHeap::return_free_pages(std::uint32_t now) {
    if (!pages_.returns_pages()) return 0;
    TrimLook look(*this);
    for (unsigned i = 0; i < shards_.end() && !look.refused(); ++i)
        if (shards_.is_open(i) && shard(i).bags.load(std::memory_order_relaxed) != 0) look.look_at(i, now);
    return look.returned();
}

// Takes objects in a row that are away: those of the bag's first 4 KiB with such objects, and as many more as are
// wanted. Their first use faults the pages in.
Supply ClassHeap::take_back(Shard& shard, BagIndex b, std::uint32_t want) {
    const Bytes size = shape().size;
    const Bytes before = first_of(class_, b);
    const std::uint32_t carved = bag(b).small.carved;
    std::uint32_t in_bag = 0;
    while (bag(b + in_bag).away == 0) ++in_bag;
    NUMALLOC_ASSERT(in_bag < shape().bags);
    Bytes unit = in_bag * units_of_bag + static_cast<unsigned>(__builtin_ctz(bag(b + in_bag).away));
    const Bytes first = divide_up(max_of(unit * unit_bytes, before) - before, size);
    Bytes end = first;
    do {
        Bag& away_in = bag(b + static_cast<std::uint32_t>(unit / units_of_bag));
        store_relaxed(away_in.away, static_cast<std::uint16_t>(away_in.away & ~(1U << unit % units_of_bag)));
        end = min_of<Bytes>(divide_up((unit + 1) * unit_bytes - before, size), carved);
        unit = (before + end * size) >> away_shift;
    } while (end - first < want && end < carved && is_away(region(), b, before + end * size));
    const auto count = static_cast<std::uint32_t>(end - first);
    set_here(bag(b), here_of(bag(b)) + count);
    if (!has_away(bag(b))) unlist(shard, b);
    shard.came_here += count;
    shard.away -= count;
    shard.idle.came_back = true;
    growth.note(Bytes{count} * size);
    shard.taken.fetch_add(count, std::memory_order_relaxed);
    return {nullptr, reinterpret_cast<void*>(region().first_object(b, class_) + first * size), count};
}

}  // namespace numalloc

// malloc_trim() returns pages of bags in use to the system if every object on them is free. An object whose first bytes were on
// such a page cannot hold the link of a free list any more. It is away: in no list, and the bag has a bit for the 4 KiB in which
// it begins (heap/space/bag.h).
//
//   pages     | stays | stays |    returned   |    returned   |
//   objects   [  in use   |   free    |   free    |   free    ]
//                             listed       away        away
//
//   pick     takes all freed objects of a bag and marks it as being cut: under the shard's lock
//   find     which 4 KiB have free objects only, and returns whole pages of them: without a lock
//   finish   notes the objects away and puts the others back: under the lock
//
// take_back() reverses it: a refill that finds no freed object gets the objects of 4 KiB that are away. If a fork happens
// between pick and finish, the child never uses that bag again.
#include "base/bit_set.h"
#include "heap/central/class_heap.h"
#include "heap/central/list_check.h"

namespace numalloc {

namespace {

// What an away bit stands for. The system's pages may be larger.
constexpr Bytes unit_bytes = Bytes{1} << away_shift;
constexpr unsigned units_of_bag = bag_bytes >> away_shift;

constexpr unsigned most_units() {
    unsigned most = 0;
    for (const ClassShape& shape : class_shapes.row) most = max_of(most, shape.bags * units_of_bag);
    return (most + 63) & ~63U;
}
using Units = BitSet<most_units()>;
using Objects = BitSet<bag_bytes / granule>;

}  // namespace

// One bag of the class after the other.
class ClassHeap::FreePages {
public:
    explicit FreePages(ClassHeap& heap) : heap_(heap), shape_(heap.shape()) {}
    FreePages(const FreePages&) = delete;
    FreePages& operator=(const FreePages&) = delete;

    // Looks at each bag that the shard has now once. It may miss some if other threads take from them at the same time.
    void look_at(unsigned shard, std::uint32_t now) {
        Emptied emptied;
        BagIndex first_back = no_bag;
        std::uint32_t left = begin(shard, now);
        while (!refused_ && pick(shard, first_back, left)) {
            find_free();
            discard();
            finish(emptied);
        }
        heap_.give(emptied);
    }
    Bytes went() const { return went_; }
    bool refused() const { return refused_; }

private:
    // The number of bags to look at: 0 if no object came or went since the last call, or if that was a moment ago and few were
    // freed since.
    std::uint32_t begin(unsigned number, std::uint32_t now) {
        Held held(heap_);
        held.hold(number);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        const std::uint64_t taken = shard.taken.load(std::memory_order_relaxed);
        const std::uint64_t fetched = shard.fetched.load(std::memory_order_relaxed);
        if (shard.looked_at_taken == taken && shard.looked_at_fetched == fetched) return 0;
        const std::uint32_t bags = shard.bags.load(std::memory_order_relaxed);
        const std::uint64_t much = policy::freed_again.part_of(std::uint64_t{bags} * shape_.objects);
        if (now - shard.looked_at < policy::look_again_after && taken + much > shard.looked_at_taken) return 0;
        shard.looked_at = now;
        shard.looked_at_taken = taken;
        shard.looked_at_fetched = fetched;
        return bags;
    }

    // Finds the next bag with newly freed objects and takes them all. Bags that it looked at become the last of the list.
    bool pick(unsigned number, BagIndex& first_back, std::uint32_t& left) {
        while (left > 0) {
            Held held(heap_);
            held.hold(number);
            Shard& shard = held.shard();
            shard.lock.assert_held();
            for (unsigned i = 0; i < bags_a_lock && left > 0; ++i, --left) {
                const BagIndex b = shard.partial;
                if (b == no_bag || b == first_back) return false;
                if (first_back == no_bag) first_back = b;
                heap_.unlist(shard, b);
                heap_.enlist_last(shard, b);
                Bag& bag = heap_.bag(b);
                FreeList freed = FreeList::of(bag);
                if (load_acquire(bag.small.being_cut) || freed.count() == bag.small.looked_at) continue;
                store_relaxed(bag.small.being_cut, true);
                while (!freed.exchange(bag, {nullptr, 0, freed.shard()})) {}
                shard.taken.fetch_add(freed.count(), std::memory_order_relaxed);
                bag_ = b;
                start_ = address_of(heap_.region().address(b));
                list_ = freed.newest();
                count_ = freed.count();
                carved_ = bag.small.carved;
                --left;
                return true;
            }
        }
        return false;
    }

    Bytes bytes() const { return Bytes{shape_.bags} << bag_shift; }
    unsigned units() const { return shape_.bags * units_of_bag; }
    // The first object that begins in the unit or after it.
    unsigned object_from(unsigned unit) const {
        return static_cast<unsigned>(min_of<Bytes>(divide_up(unit * unit_bytes, shape_.size), carved_));
    }
    unsigned unit_of(unsigned object) const { return static_cast<unsigned>(Bytes{object} * shape_.size >> away_shift); }

    // Which objects are free, and which units have no others. A unit that was not carved to its end does not count: another
    // thread may carve its next object now.
    void find_free() {
        free_.clear();
        free_units_.clear();
        were_away_.clear();
        const Object* o = list_;
        for (std::uint32_t i = 0; i < count_; ++i, o = o->next) {
            const Bytes offset = address_of(o) - start_;
            if (offset >= bytes()) die_of_damage(o);
            free_.add(object_at(heap_.class_, offset));
        }
        for (unsigned u = 0; u < units(); ++u) {
            if (!is_away(heap_.region(), bag_, u * unit_bytes)) continue;
            were_away_.add(u);
            for (unsigned i = object_from(u), end = object_from(u + 1); i < end; ++i) free_.add(i);
        }
        const Bytes end = carved_ == shape_.objects ? bytes() : Bytes{carved_} * shape_.size;
        for (unsigned u = 0; u < units() && (u + 1) * unit_bytes <= end; ++u)
            if (is_free(u)) free_units_.add(u);
    }

    bool is_free(unsigned unit) const {
        unsigned i = static_cast<unsigned>(unit * unit_bytes / shape_.size);
        for (const unsigned end = object_from(unit + 1); i < end; ++i)
            if (!free_.test(i)) return false;
        return true;
    }

    // Returns each row of free pages by one call. Objects on pages that the kernel refuses to take stay in the list.
    void discard() {
        gone_.clear();
        const Bytes page = max_of(os::page_size(), unit_bytes);
        Address row = 0;
        const Address end = start_ + bytes();
        for (Address at = align_up(start_, page); !refused_; at += page) {
            const bool free = at + page <= end && is_free_page(at, page);
            if (free && row == 0) row = at;
            if (!free && row != 0) {
                discard_row(row, at);
                row = 0;
            }
            if (at + page > end) return;
        }
    }

    bool is_free_page(Address at, Bytes page) const {
        for (Address unit = at; unit < at + page; unit += unit_bytes)
            if (!free_units_.test(static_cast<unsigned>((unit - start_) >> away_shift))) return false;
        return true;
    }

    void discard_row(Address from, Address to) {
        if (!heap_.pages_.return_pages(reinterpret_cast<void*>(from), to - from)) {
            refused_ = true;
            return;
        }
        for (Address unit = from; unit < to; unit += unit_bytes) {
            const auto u = static_cast<unsigned>((unit - start_) >> away_shift);
            gone_.add(u);
            if (!were_away_.test(u)) went_ += unit_bytes;
        }
    }

    void finish(Emptied& emptied) {
        Object* first = nullptr;
        Object* last = nullptr;
        std::uint32_t kept = 0;
        for (unsigned i = free_.previous(Objects::bits); i < Objects::bits; i = free_.previous(i)) {
            if (gone_.test(unit_of(i)) || were_away_.test(unit_of(i))) continue;
            auto* const object = reinterpret_cast<Object*>(start_ + Bytes{i} * shape_.size);
            object->next = first;
            first = object;
            if (last == nullptr) last = object;
            ++kept;
        }
        Bag& bag = heap_.bag(bag_);
        Held held(heap_);
        held.hold_shard_of(bag);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        for (unsigned u = 0; u < units(); ++u)
            if (gone_.test(u) && object_from(u) < object_from(u + 1)) note_away(u);
        store_relaxed(bag.small.here, static_cast<std::uint16_t>(bag.small.here - (count_ - kept)));
        FreeList freed = FreeList::of(bag);
        do {
            if (kept > 0) last->next = freed.newest();
        } while (kept > 0 && !freed.exchange(bag, freed.with(first, kept)));
        shard.taken.fetch_sub(count_, std::memory_order_relaxed);
        bag.small.looked_at = static_cast<std::uint16_t>(FreeList::of(bag).count());
        store_release(bag.small.being_cut, false);
        if (!bag.small.listed) heap_.enlist_last(shard, bag_);
        heap_.give_if_empty(shard, bag_, emptied);
        heap_.note_spare(held.number());
    }

    void note_away(unsigned unit) {
        Bag& bag = heap_.bag(bag_ + unit / units_of_bag);
        store_relaxed(bag.away, static_cast<std::uint16_t>(bag.away | 1U << unit % units_of_bag));
    }

    ClassHeap& heap_;
    const ClassShape& shape_;
    Bytes went_ = 0;
    bool refused_ = false;

    static constexpr unsigned bags_a_lock = 16;

    // Of the bag at work.
    BagIndex bag_;
    Address start_ = 0;
    Object* list_ = nullptr;
    std::uint32_t count_ = 0;
    std::uint32_t carved_ = 0;
    Objects free_;       // in list_, or away
    Units were_away_;    // units with objects away
    Units free_units_;
    Units gone_;
};

Bytes ClassHeap::return_free_pages(std::uint32_t now) {
    FreePages pages(*this);
    for (unsigned i = 0; i < shards_.end() && !pages.refused(); ++i)
        if (shards_.is_open(i) && shard(i).bags.load(std::memory_order_relaxed) != 0) pages.look_at(i, now);
    return pages.went();
}

// The objects that begin in the bag's first 4 KiB that are away. Whoever uses them faults the page in.
Supply ClassHeap::take_back(Shard& shard, BagIndex b) {
    unsigned in_bag = 0;
    while (bag(b + in_bag).away == 0) ++in_bag;
    Bag& away_in = bag(b + in_bag);
    const Bytes from = Bytes{in_bag} * bag_bytes + static_cast<unsigned>(__builtin_ctz(away_in.away)) * unit_bytes;
    store_relaxed(away_in.away, static_cast<std::uint16_t>(away_in.away & (away_in.away - 1)));
    const Bytes first = divide_up(from, shape().size);
    const auto count = static_cast<std::uint32_t>(min_of<Bytes>(divide_up(from + unit_bytes, shape().size), bag(b).small.carved) - first);
    store_relaxed(bag(b).small.here, static_cast<std::uint16_t>(bag(b).small.here + count));
    if (!has_away(bag(b))) unlist(shard, b);
    shard.taken.fetch_add(count, std::memory_order_relaxed);
    return {nullptr, static_cast<char*>(region().address(b)) + first * shape().size, count};
}

}  // namespace numalloc

// malloc_trim() returns pages of bags in use to the system if every object on them is free. An object whose first bytes
// were on such a page cannot hold the link of a free list any more. It is away: in no list, and the bag has a bit for
// the 4 KiB in which it begins (heap/space/bag.h).
//
//   pages     | stays | stays |    returned   |    returned   |
//   objects   [  in use   |   free    |   free    |   free    ]
//                             listed       away        away
//
//   pick            under the shard's lock: takes all freed objects of a bag and marks it as being cut
//   find_free       without a lock: which objects are free,
//   choose_pages    ... which pages have no others,
//   split_list      ... which objects stay in the list
//   return_pages    ... returns the pages
//   finish          under the lock: notes the objects away and puts the others back
//
// take_back() reverses it: a refill that finds no freed object gets objects that are away, those of 4 KiB at least.
#include "base/bit_set.h"
#include "base/check.h"
#include "heap/central/class_heap.h"
#include "heap/central/list_check.h"
#include "heap/pages/growth.h"
#include "heap/space/mark.h"

namespace numalloc {

namespace policy::trim {

// malloc_trim() inspects a shard's bags within look_again_after if 1/8 of its objects have been freed, or use pages
// again, since the last time: then a large part of the shard may be returned.
constexpr Fraction much_changed{1, 8};
// Where bags may lie on huge pages, malloc_trim() returns pages only of bags of which it can return 1/4: a single
// returned page costs its 64 MiB their huge pages.
constexpr unsigned least_of_huge = 4;

}  // namespace policy::trim

namespace {

// The memory that an away bit stands for. The system's pages may be larger.
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

// Works on one bag of the class after the other.
class ClassHeap::FreePages {
public:
    explicit FreePages(ClassHeap& heap) : heap_(heap), shape_(heap.shape()) {}
    FreePages(const FreePages&) = delete;
    FreePages& operator=(const FreePages&) = delete;

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
            find_free();
            choose_pages();
            split_list();
            return_pages();
            finish();
            all_gone = all_gone && all_gone_;
        }
        if (!all_gone) forget(shard);
    }
    Bytes returned() const { return returned_; }
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
                store_relaxed(bag.small.being_cut, true);
                while (!freed.exchange(bag, {nullptr, 0, freed.shard()})) {}
                shard.taken.fetch_add(freed.count(), std::memory_order_relaxed);
                bag_ = b;
                start_ = address_of(heap_.region().address(b));
                first_ = heap_.region().first_object(b, heap_.class_);
                list_ = {freed.newest(), freed.count()};
                carved_ = bag.small.carved;
                return true;
            }
        }
        return false;
    }

    Bytes bytes() const { return Bytes{shape_.bags} << bag_shift; }
    unsigned units() const { return shape_.bags * units_of_bag; }
    // Bytes from the first object to the unit.
    Bytes before(unsigned unit) const {
        const Address at = start_ + unit * unit_bytes;
        return max_of(at, first_) - first_;
    }
    // The first object that begins in the unit or after it.
    unsigned object_from(unsigned unit) const {
        return static_cast<unsigned>(min_of<Bytes>(divide_up(before(unit), shape_.size), carved_));
    }
    Address address(unsigned object) const { return first_ + Bytes{object} * shape_.size; }
    unsigned object_of(const Object* o) const { return object_at(heap_.class_, address_of(o) - first_); }
    unsigned unit_of(unsigned object) const { return unit_at(address(object)); }
    unsigned unit_at(Address at) const { return static_cast<unsigned>((at - start_) >> away_shift); }

    // Finds which objects are free: those of the list, and those away.
    void find_free() {
        free_.clear();
        were_away_.clear();
        const ObjectCheck check(heap_.region(), heap_.class_);
        const Object* o = list_.head;
        for (std::uint32_t i = 0; i < list_.count; ++i, o = o->next) {
            if (address_of(o) - start_ >= bytes()) die_of_damage(o);
            if (!check.starts_object(o, first_)) die_of_interior(o);
            if (free_.test(object_of(o))) die_of_second_free(o);
            free_.add(object_of(o));
        }
        for (unsigned u = 0; u < units(); ++u) {
            if (!is_away(heap_.region(), bag_, u * unit_bytes)) continue;
            were_away_.add(u);
            for (unsigned i = object_from(u), end = object_from(u + 1); i < end; ++i) free_.add(i);
        }
    }

    // Chooses whole pages with free objects only. Not the page that is carved next: another thread may carve it now.
    void choose_pages() {
        gone_.clear();
        const Bytes page = max_of(os::page_size(), unit_bytes);
        const Address end = carved_ == shape_.objects ? start_ + bytes() : address(carved_);
        unsigned units = 0;
        for (Address at = align_up(start_, page); at + page <= end; at += page) {
            if (!is_free_page(at, page)) continue;
            for (Address unit = at; unit < at + page; unit += unit_bytes) gone_.add(unit_at(unit));
            if (at + page > first_ && at < address(carved_)) units += static_cast<unsigned>(page / unit_bytes);
        }
        if (heap_.pages_.breaks_huge_page(bag_) && units * policy::trim::least_of_huge < this->units()) gone_.clear();
    }
    bool is_free_page(Address at, Bytes page) const {
        unsigned i = static_cast<unsigned>(before(unit_at(at)) / shape_.size);
        for (const unsigned end = object_from(unit_at(at + page)); i < end; ++i)
            if (!free_.test(i)) return false;
        return true;
    }

    // Leaves only the objects that stay in the list, in its order.
    void split_list() {
        Batch kept;
        Object* last = nullptr;
        Object* o = list_.head;
        for (std::uint32_t i = 0; i < list_.count; ++i) {
            Object* const next = o->next;
            if (!gone_.test(unit_of(object_of(o)))) {
                if (last == nullptr) kept.head = o;
                else last->next = o;
                last = o;
                ++kept.count;
            }
            o = next;
        }
        newly_away_ = list_.count - kept.count;
        list_ = kept;
        last_ = last;
    }

    // Whether the unit may be resident: not if all objects that have bytes on it were away before.
    bool may_be_there(unsigned unit) const {
        const auto first = static_cast<unsigned>(before(unit) / shape_.size);
        return !were_away_.test(unit) || (first < carved_ && !were_away_.test(unit_of(first)));
    }

    // Makes one call for each row of pages.
    void return_pages() {
        all_gone_ = true;
        for (unsigned u = 0; u < units();) {
            unsigned end = u;
            bool any_there = false;
            for (; end < units() && gone_.test(end); ++end) any_there = any_there || may_be_there(end);
            if (any_there) return_row(u, end);
            u = end + 1;
        }
    }
    void return_row(unsigned from, unsigned end) {
        void* const at = reinterpret_cast<void*>(start_ + from * unit_bytes);
        const bool gone = heap_.pages_.return_pages(at, (end - from) * unit_bytes);
        refusals_ = gone ? 0 : refusals_ + 1;
        all_gone_ = all_gone_ && gone;
        for (unsigned u = from; u < end; ++u) {
            if (were_away_.test(u)) continue;
            if (gone) returned_ += unit_bytes;
            else stay(u);
        }
    }
    // Puts back the objects on pages that the system refused. It may have taken some of them, so they are marked anew.
    void stay(unsigned unit) {
        gone_.remove(unit);
        for (unsigned i = object_from(unit), end = object_from(unit + 1); i < end; ++i) {
            auto* const object = reinterpret_cast<Object*>(address(i));
            make_freed(object, shape_.size);
            object->next = list_.head;
            if (last_ == nullptr) last_ = object;
            list_ = {object, list_.count + 1};
            --newly_away_;
        }
    }

    void finish() {
        Emptied emptied;
        {
            Bag& bag = heap_.bag(bag_);
            Held held(heap_);
            held.hold_shard_of(bag);
            Shard& shard = held.shard();
            shard.lock.assert_held();
            for (unsigned u = 0; u < units(); ++u)
                if (gone_.test(u) && object_from(u) < object_from(u + 1)) note_away(u);
            set_here(bag, here_of(bag) - newly_away_);
            FreeList freed = FreeList::of(bag);
            while (list_.count > 0) {
                last_->next = freed.newest();
                if (freed.exchange(bag, freed.with(list_.head, list_.count))) break;
            }
            shard.taken.fetch_sub(list_.count + newly_away_, std::memory_order_relaxed);
            bag.small.looked_at = all_gone_ ? static_cast<std::uint16_t>(list_.count) : Bag::Small::never;
            store_release(bag.small.being_cut, false);
            if (!bag.small.listed) heap_.enlist_last(shard, bag_);
            heap_.give_if_empty(shard, bag_, emptied);
            heap_.note_spare(held.number());
        }
        heap_.give(emptied);
    }
    void note_away(unsigned unit) {
        Bag& bag = heap_.bag(bag_ + unit / units_of_bag);
        store_relaxed(bag.away, static_cast<std::uint16_t>(bag.away | 1U << unit % units_of_bag));
    }

    static constexpr unsigned bags_a_lock = 16;
    static constexpr unsigned most_refusals = 8;

    ClassHeap& heap_;
    const ClassShape& shape_;
    Bytes returned_ = 0;
    unsigned refusals_ = 0;

    // The bag at work.
    BagIndex bag_;
    Address start_ = 0;
    Address first_ = 0;  // its first object
    std::uint32_t carved_ = 0;
    Batch list_;              // its freed objects; after split_list(), those that stay
    Object* last_ = nullptr;  // the list's last object
    std::uint32_t newly_away_ = 0;
    bool all_gone_ = true;  // no page was refused
    Objects free_;          // in the list, or away
    Units were_away_;       // units with objects away
    Units gone_;            // units of pages to return, or returned
};

Bytes ClassHeap::return_free_pages(std::uint32_t now) {
    if (!pages_.returns_pages()) return 0;
    FreePages pages(*this);
    for (unsigned i = 0; i < shards_.end() && !pages.refused(); ++i)
        if (shards_.is_open(i) && shard(i).bags.load(std::memory_order_relaxed) != 0) pages.look_at(i, now);
    return pages.returned();
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
    growth.note(Bytes{count} * size);
    shard.taken.fetch_add(count, std::memory_order_relaxed);
    return {nullptr, reinterpret_cast<void*>(region().first_object(b, class_) + first * size), count};
}

}  // namespace numalloc

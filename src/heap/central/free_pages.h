// Returns pages of a bag in use to the system if every object on them is free. An object whose first bytes were on such
// a page cannot hold the link of a free list any more. It is away: in no list, and the bag has a bit for the 4 KiB in
// which it begins (heap/space/bag.h). One above 32 KiB is away if any of its pages is gone.
//
//   pages     | stays | stays |    returned   |    returned   |
//   objects   [  in use   |   free    |   free    |   free    ]
//                             listed       away        away
//
//   take_freed      under the shard's lock: takes all freed objects of a bag and marks it as being cut
//   return_pages    without a lock: finds which objects are free, which pages have no others, and which objects stay
//                   in the list; returns the pages
//   put_back        under the lock: notes the objects away and puts the others back
//
// ClassHeap::take_back() reverses it: a refill that finds no freed object gets objects that are away, those of 4 KiB at
// least. Which bags are looked at: free_pages.cpp for malloc_trim(), idle_pages.cpp for housekeeping.
#pragma once

#include "base/bit_set.h"
#include "base/check.h"
#include "heap/central/class_heap.h"
#include "heap/central/list_check.h"
#include "heap/space/mark.h"

namespace numalloc {

namespace policy::trim {

// Where bags may lie on huge pages, pages are returned only of bags of which 1/4 can be: a single returned page costs
// its 64 MiB their huge pages.
constexpr unsigned least_of_huge = 4;

}  // namespace policy::trim

// The memory that an away bit stands for. The system's pages may be larger.
constexpr Bytes unit_bytes = Bytes{1} << away_shift;
constexpr unsigned units_of_bag = bag_bytes >> away_shift;
constexpr unsigned most_units() {
    unsigned most = 0;
    for (const ClassShape& shape : class_shapes.row) most = max_of(most, shape.bags * units_of_bag);
    return (most + 63) & ~63U;
}

// Works on one bag of the class after the other.
class ClassHeap::FreePages {
public:
    // `idle`: nobody has needed them for purge_delay, for those who trace it.
    FreePages(ClassHeap& heap, bool idle) : heap_(heap), shape_(heap.shape()), idle_(idle) {}
    FreePages(const FreePages&) = delete;
    FreePages& operator=(const FreePages&) = delete;

    // The bag at work: it stays in its shard and its list until put_back().
    BagIndex bag() const { return bag_; }
    // Whether the system took all its pages that were free.
    bool all_gone() const { return all_gone_; }
    // Of all bags.
    Bytes returned() const { return returned_; }

    // At most `most` of the bag's objects will go, those freed first.
    void take_freed(Shard& shard, BagIndex b, std::uint32_t most) NUMALLOC_REQUIRES(shard.lock) {
        Bag& bag = heap_.bag(b);
        FreeList freed = FreeList::of(bag);
        store_relaxed(bag.small.being_cut, true);
        while (!freed.exchange(bag, {nullptr, 0, freed.shard()})) {}
        shard.taken.fetch_add(freed.count(), std::memory_order_relaxed);
        bag_ = b;
        start_ = address_of(heap_.region().address(b));
        first_ = heap_.region().first_object(b, heap_.class_);
        list_ = {freed.newest(), freed.count()};
        carved_ = bag.small.carved;
        newest_ = list_.count - min_of(list_.count, most);
    }
    void return_pages() {
        find_free();
        choose_pages();
        split_list();
        return_rows();
    }
    void put_back(Shard& shard, Emptied& emptied) NUMALLOC_REQUIRES(shard.lock) {
        Bag& bag = heap_.bag(bag_);
        for (unsigned u = 0; u < units(); ++u)
            if (newly_away_in_.test(u)) note_away(u);
        set_here(bag, here_of(bag) - newly_away_);
        shard.away += newly_away_;
        shard.idle.leave(newly_away_);
        FreeList freed = FreeList::of(bag);
        while (list_.count > 0) {
            last_->next = freed.newest();
            if (freed.exchange(bag, freed.with(list_.head, list_.count))) break;
        }
        shard.taken.fetch_sub(list_.count + newly_away_, std::memory_order_relaxed);
        bag.small.looked_at = all_gone_ && newest_ == 0 ? static_cast<std::uint16_t>(list_.count) : Bag::Small::never;
        store_release(bag.small.being_cut, false);
        if (FreeList::of(bag).count() == 0) heap_.unlist(shard, bag_);  // bags with freed objects come first
        if (!bag.small.listed) heap_.enlist_last(shard, bag_);
        const unsigned number = shard_of(bag);
        heap_.give_if_empty(shard, bag_, emptied);
        heap_.note_spare(number);
    }

private:
    using Units = BitSet<most_units()>;
    using Objects = BitSet<bag_bytes / granule>;

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

    // Finds which objects are free: those of the list that may go, and those away.
    void find_free() {
        free_.clear();
        were_away_.clear();
        const ObjectCheck check(heap_.region(), heap_.class_);
        Objects newest;
        newest.clear();
        const Object* o = list_.head;
        for (std::uint32_t i = 0; i < list_.count; ++i, o = o->next) {
            if (address_of(o) - start_ >= bytes()) die_of_damage(o);
            if (!check.starts_object(o, first_)) die_of_interior(o);
            if (free_.test(object_of(o)) || newest.test(object_of(o))) die_of_second_free(o);
            (i < newest_ ? newest : free_).add(object_of(o));
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

    // Whether the object is away once the pages in gone_ are: if its first bytes are on one or, above 32 KiB, any of
    // its bytes. (So those that are listed are resident, and the numbers of idle_pages.cpp are right.)
    bool leaves(unsigned object) const {
        unsigned unit = unit_of(object);
        if (shape_.batch > 1) return gone_.test(unit);
        const unsigned last = unit_at(address(object) + shape_.size - 1);
        while (unit < last && !gone_.test(unit)) ++unit;
        return gone_.test(unit);
    }
    // Leaves only the objects that stay in the list, in its order.
    void split_list() {
        newly_away_in_.clear();
        Batch kept;
        Object* last = nullptr;
        Object* o = list_.head;
        for (std::uint32_t i = 0; i < list_.count; ++i) {
            Object* const next = o->next;
            if (leaves(object_of(o))) {
                newly_away_in_.add(unit_of(object_of(o)));
                o->mark = 0;  // its page may stay: see clear_marks()
            } else {
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
        if (first >= carved_ || !were_away_.test(unit_of(first))) return true;
        return object_from(unit) < object_from(unit + 1) && !were_away_.test(unit);
    }

    // Makes one call for each row of pages.
    void return_rows() {
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
        const bool gone = heap_.pages_.return_pages(at, (end - from) * unit_bytes, idle_);
        all_gone_ = all_gone_ && gone;
        for (unsigned u = from; u < end; ++u) {
            if (gone && may_be_there(u)) returned_ += unit_bytes;
            if (!gone && !were_away_.test(u)) stay(u);
        }
        if (gone) return;
        // Above 32 KiB: the object that begins before the row.
        const auto first = static_cast<unsigned>(before(from) / shape_.size);
        if (first < carved_ && newly_away_in_.test(unit_of(first))) relist(unit_of(first));
    }
    // Puts back the objects on pages that the system refused. It may have taken some of them, so they are marked anew.
    void stay(unsigned unit) {
        gone_.remove(unit);
        relist(unit);
    }
    void relist(unsigned unit) {
        newly_away_in_.remove(unit);
        for (unsigned i = object_from(unit), end = object_from(unit + 1); i < end; ++i) {
            auto* const object = reinterpret_cast<Object*>(address(i));
            make_freed(object, shape_.size);
            object->next = list_.head;
            if (last_ == nullptr) last_ = object;
            list_ = {object, list_.count + 1};
            --newly_away_;
        }
    }

    void note_away(unsigned unit) {
        Bag& bag = heap_.bag(bag_ + unit / units_of_bag);
        store_relaxed(bag.away, static_cast<std::uint16_t>(bag.away | 1U << unit % units_of_bag));
    }

    ClassHeap& heap_;
    const ClassShape& shape_;
    const bool idle_;
    Bytes returned_ = 0;

    // The bag at work.
    BagIndex bag_;
    Address start_ = 0;
    Address first_ = 0;  // its first object
    std::uint32_t carved_ = 0;
    Batch list_;                // its freed objects; after split_list(), those that stay
    Object* last_ = nullptr;    // the list's last object
    std::uint32_t newest_ = 0;  // objects that stay, whatever their pages: the first of list_
    std::uint32_t newly_away_ = 0;
    bool all_gone_ = true;
    Objects free_;         // in the list, or away
    Units were_away_;      // units with objects away
    Units gone_;           // units of pages to return, or returned
    Units newly_away_in_;  // units in which objects begin that are newly away
};

}  // namespace numalloc

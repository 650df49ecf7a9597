// A shard's bags: which have free objects, how a refill takes from them, and where new ones come from. All but the end
// of this file runs under the shard's lock, in steps that depend on no list's length.
#include "base/check.h"
#include "heap/central/class_heap.h"
#include "os/between_steps.h"

namespace numalloc {

namespace policy::shards {

// A refill passes over 16 bags whose free objects are all away, and an adoption over 16 that are being cut. With the
// bags that other refills are cutting, at most one a thread, this bounds the time under the shard's lock.
constexpr unsigned bags_passed_over = 16;

}  // namespace policy::shards

void ClassHeap::Held::release() {
    if (shard_ != nullptr) shard_->lock.unlock();
    shard_ = nullptr;
}

void ClassHeap::Held::hold(unsigned shard) {
    if (shard_ != nullptr && number_ == shard) return;
    release();
    NUMALLOC_ASSERT(shard < policy::shards::most && heap_.shards_.is_open(shard));
    number_ = shard;
    shard_ = &heap_.shard(shard);
    shard_->lock.lock();
}

void ClassHeap::Held::hold_shard_of(const Bag& bag) {
    do hold(shard_of(bag));
    while (!is_of(bag));
}

void ClassHeap::enlist(Shard& shard, BagIndex b) {
    Bag::Small& s = bag(b).small;
    s.next = shard.partial;
    s.previous = no_bag;
    s.listed = true;
    (shard.partial != no_bag ? bag(shard.partial).small.previous : shard.last_partial) = b;
    shard.partial = b;
}

void ClassHeap::enlist_last(Shard& shard, BagIndex b) {
    Bag::Small& s = bag(b).small;
    s.next = no_bag;
    s.previous = shard.last_partial;
    s.listed = true;
    (shard.last_partial != no_bag ? bag(shard.last_partial).small.next : shard.partial) = b;
    shard.last_partial = b;
}

void ClassHeap::unlist(Shard& shard, BagIndex b) {
    Bag::Small& s = bag(b).small;
    if (!s.listed) return;
    (s.previous != no_bag ? bag(s.previous).small.next : shard.partial) = s.next;
    (s.next != no_bag ? bag(s.next).small.previous : shard.last_partial) = s.previous;
    s.listed = false;
}

// Written under the shard's lock, read without it.
void ClassHeap::count_bags(Shard& shard, std::int32_t more) {
    shard.bags.store(shard.bags.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(more),
                     std::memory_order_relaxed);
}

// Takes the freed objects of as many bags as needed. cut() takes the newest ones of the last bag once the lock is
// released: until then no other thread takes from that bag or returns it. If there are no freed objects, takes objects
// that are away. Moves bags that have only objects away to the end of the list when it meets them.
void ClassHeap::take_freed(Shard& shard, std::uint32_t want, Taken& taken) {
    BagIndex only_away = no_bag;
    unsigned passed_over = 0;
    for (BagIndex b = shard.partial, next; b != no_bag && taken.count < want && taken.lists < Taken::most; b = next) {
        Bag& from = bag(b);
        next = from.small.next;
        if (load_acquire(from.small.being_cut)) continue;
        FreeList freed = FreeList::of(from);
        if (NUMALLOC_UNLIKELY(freed.count() == 0)) {
            if (only_away == no_bag) only_away = b;
            unlist(shard, b);
            enlist_last(shard, b);
            if (++passed_over == policy::shards::bags_passed_over) break;
            continue;
        }
        if (freed.count() > want - taken.count) {
            store_relaxed(from.small.being_cut, true);
            from.small.looked_at = Bag::Small::never;
            taken.cut = b;
            taken.cut_count = want - taken.count;
            return;
        }
        while (!freed.exchange(from, {nullptr, 0, freed.shard()})) {}
        unlist(shard, b);
        if (NUMALLOC_UNLIKELY(has_away(from))) enlist_last(shard, b);
        taken.list[taken.lists++] = {freed.newest(), freed.count()};
        taken.count += freed.count();
        shard.taken.fetch_add(freed.count(), std::memory_order_relaxed);
    }
    if (NUMALLOC_UNLIKELY(only_away != no_bag) && taken.nothing()) taken.fresh = take_back(shard, only_away, want);
}

Supply ClassHeap::carve(Shard& shard, std::uint32_t want) {
    Bag& from = bag(shard.carving);
    const std::uint32_t left = std::uint32_t{shape().objects} - from.small.carved;
    const std::uint32_t count = min_of(want, left);
    const Address first = region().first_object(shard.carving, class_) + Bytes{from.small.carved} * shape().size;
    store_relaxed(from.small.carved, static_cast<std::uint16_t>(from.small.carved + count));
    add_here(from, count);
    shard.came_here += count;
    shard.taken.fetch_add(count, std::memory_order_relaxed);
    if (count == left) shard.carving = no_bag;
    return {nullptr, reinterpret_cast<void*>(first), count,
            region().is_zero(reinterpret_cast<void*>(first), Bytes{count} * shape().size)};
}

void ClassHeap::add_bag(Shard& own, unsigned number, BagIndex fresh) {
    own.carving = fresh;
    count_bags(own, 1);
    common().bags.fetch_add(1, std::memory_order_relaxed);
    Bag& added = region().bag(fresh);
    added.small = {};
    FreeList{nullptr, 0, number}.put_into(added);
    for (std::uint32_t i = 0; i < shape().bags; ++i) bag(fresh + i).away = 0;
    region().mark_inside(fresh, shape().bags);
    region().set_class(fresh, shape().bags, class_);
}

// The last of the shard's bags, or one of those before it if a refill or FreePages takes from the last.
BagIndex ClassHeap::spared_by(Shard& other) {
    BagIndex b = other.last_partial;
    if (b == no_bag) return other.carving;
    for (unsigned i = 0; i < policy::shards::bags_passed_over && b != no_bag; ++i) {
        if (!load_acquire(bag(b).small.being_cut)) return b;
        b = bag(b).small.previous;
    }
    return no_bag;
}

// Moves a bag of another shard (its emptiest, if bags were freed in order) to shard `number`, which has no objects
// left. Tries only shards that have a bag to spare and whose lock is free: no thread waits for two locks.
bool ClassHeap::adopt(Shard& own, unsigned number) {
    if (!pages_.shares_huge_pages()) return false;
    const unsigned shards = shards_.end();
    for (unsigned k = 1; k < shards; ++k) {
        const unsigned i = (number + k) % shards;
        if (!test_bit(common().spare, i)) continue;
        Shard& other = shard(i);
        os::count(os::Count::foreign_try_locks);
        if (!other.lock.try_lock()) continue;
        const BagIndex b = can_spare(other) ? spared_by(other) : no_bag;
        if (b != no_bag) {
            Bag& moves = bag(b);
            const bool listed = moves.small.listed;
            unlist(other, b);
            if (other.carving == b) {
                other.carving = no_bag;
                own.carving = b;
            }
            FreeList freed = FreeList::of(moves);
            while (!freed.exchange(moves, {freed.newest(), freed.count(), number})) {}
            const std::uint32_t in_use = here_of(moves) - freed.count();
            own.taken.fetch_add(in_use, std::memory_order_relaxed);
            other.taken.fetch_sub(in_use, std::memory_order_relaxed);
            count_bags(other, -1);
            count_bags(own, 1);
            const std::uint32_t away = away_of(moves);
            other.away -= away;
            other.idle.leave(freed.count());
            own.away += away;
            if (listed) enlist(own, b);
        }
        note_spare(i);
        other.lock.unlock();
        if (b != no_bag) return true;
    }
    return false;
}

void ClassHeap::take_from(Shard& shard, std::uint32_t want, Taken& taken) {
    take_freed(shard, want, taken);
    if (taken.nothing() && shard.carving != no_bag) taken.fresh = carve(shard, want);
}

void ClassHeap::give_if_empty(Shard& shard, BagIndex b, Emptied& emptied) {
    Bag& empty = bag(b);
    // In this order: a cut may end between the two loads, but none begins while the lock is held.
    if (load_acquire(empty.small.being_cut)) return;
    os::between_steps();
    if (FreeList::of(empty).count() != here_of(empty)) return;
    unlist(shard, b);
    if (shard.carving == b) shard.carving = no_bag;
    shard.away -= away_of(empty);
    shard.idle.leave(here_of(empty));
    region().set_class(b, shape().bags, no_class);
    count_bags(shard, -1);
    common().bags.fetch_sub(1, std::memory_order_relaxed);
    empty.small.next = emptied.first;
    emptied.first = b;
}

void ClassHeap::give_carved(unsigned number) {
    number = shard_for(number);
    Emptied emptied;
    {
        Held held(*this);
        held.hold(number);
        Shard& own = held.shard();
        own.lock.assert_held();
        if (own.carving != no_bag) give_if_empty(own, own.carving, emptied);
    }
    give(emptied);
}

void ClassHeap::drain(bool idle_only) {
    // A fork's child would lose the lists in hand, and the bags in `emptied`.
    const os::Inside inside;
    if (!inside) return;
    Emptied emptied;
    BitSet<policy::shards::most> drained;
    const auto passes_over = [&](Activity& activity) {
        if (activity.state() == Activity::drained) return true;
        const bool rests = idle_only && activity.state() == Activity::used;
        if (rests) activity.rest();
        else activity.begin_drain();
        return rests;
    };
    if (!passes_over(common().activity))
        for (Batch list; (list = common().ring.pop_newest()).head != nullptr;) sort(list, emptied);
    for (unsigned i = 0; i < shards_.end(); ++i) {
        if (!shards_.is_open(i) || passes_over(shard(i).activity)) continue;
        drained.add(i);
        for (Batch list; (list = shard(i).ring.pop_newest()).head != nullptr;) sort(list, emptied);
    }
    // Only now: a list may have had objects of any shard's bag, even of a shard that was passed over.
    Held held(*this);
    for (unsigned i = 0; i < shards_.end(); ++i) {
        if (!shards_.is_open(i)) continue;
        const bool sorted_into = !idle_only && shard(i).activity.state() == Activity::used;
        if (!drained.test(i) && !sorted_into) continue;
        held.hold(i);
        Shard& own = held.shard();
        own.lock.assert_held();
        if (own.carving != no_bag) give_if_empty(own, own.carving, emptied);
    }
    held.release();
    give(emptied);
}

// Cuts the newest `count` objects off a bag that is marked as being cut, and links `before` behind them.
Object* ClassHeap::cut(BagIndex b, std::uint32_t count, Object* before) {
    Bag& from = bag(b);
    FreeList freed = FreeList::of(from);
    for (;;) {
        Object* last = freed.newest();
        for (std::uint32_t i = 1; i < count; ++i) last = last->next;
        os::count_walked(count);
        Object* const first = freed.newest();
        os::between_steps();
        // Count them before any thread can free them.
        const unsigned number = freed.shard();
        shard(number).taken.fetch_add(count, std::memory_order_relaxed);
        if (!freed.exchange(from, {last->next, freed.count() - count, number})) {
            // Other threads have freed objects: the walk begins with those.
            shard(number).taken.fetch_sub(count, std::memory_order_relaxed);
            continue;
        }
        last->next = before;
        store_release(from.small.being_cut, false);
        note_spare(number);
        return first;
    }
}

// Of objects that were away, frees those that the refill does not want into their bag.
Supply ClassHeap::shortened(Supply fresh, std::uint32_t want) {
    void* const rest = static_cast<char*>(fresh.fresh) + Bytes{want} * shape().size;
    give_to_bags({link_fresh(rest, fresh.count - want, shape().size), fresh.count - want});
    fresh.count = want;
    return fresh;
}

// Joins all into one list. The objects that it walks over are about to be handed out.
Supply ClassHeap::supply_of(const Taken& taken, std::uint32_t want) {
    if (taken.fresh.count != 0) return taken.fresh.count > want ? shortened(taken.fresh, want) : taken.fresh;
    Supply supply;
    for (unsigned i = 0; i < taken.lists; ++i) {
        if (supply.list != nullptr) {
            Object* last = taken.list[i].head;
            while (last->next != nullptr) last = last->next;
            os::count_walked(taken.list[i].count);
            last->next = supply.list;
        }
        supply.list = taken.list[i].head;
        supply.count += taken.list[i].count;
    }
    if (taken.cut != no_bag) {
        supply.list = cut(taken.cut, taken.cut_count, supply.list);
        supply.count += taken.cut_count;
    }
    return supply;
}

// Clears the marks of the objects of an empty bag, which no thread can reach any more: mark.h. Objects away have none.
void ClassHeap::clear_marks(BagIndex b) {
    const Bag& empty = bag(b);
    const bool may_be_away = has_away(empty);
    const Bytes size = shape().size;
    const Address start = address_of(region().address(b));
    Address object = region().first_object(b, class_);
    for (const Address end = object + Bytes{empty.small.carved} * size; object != end; object += size)
        if (!may_be_away || !is_away(region(), b, object - start)) reinterpret_cast<Object*>(object)->mark = 0;
}

void ClassHeap::give(const Emptied& emptied) {
    for (BagIndex b = emptied.first; b != no_bag;) {
        const BagIndex next = bag(b).small.next;
        clear_marks(b);
        pages_.give(b);
        b = next;
    }
}

}  // namespace numalloc

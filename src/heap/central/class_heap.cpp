#include "heap/central/class_heap.h"

#include "base/check.h"
#include "heap/central/list_check.h"

namespace numalloc {

namespace {

// Whose huge pages a shard's bags come from, where incremental sharing is off.
constexpr std::uint32_t page_owner(ClassId c, unsigned shard) { return c.value * most_shards + shard; }

// The last of the objects that are linked at a distance of `step` from `first` on, before `stop`; `run`
// counts them, less the first. The address of the next is computed, and what the object says is only
// compared with it: so no load waits for the one before.
Object* last_in_row(Object* first, Bytes step, Address stop, std::uint32_t& run) {
    Address last = address_of(first);
    for (Address next = last + step; next != stop && address_of(reinterpret_cast<Object*>(last)->next) == next; next += step) {
        __asm__("" : "+r"(next));  // lest the compiler take the one for the other
        last = next;
        ++run;
    }
    return reinterpret_cast<Object*>(last);
}

bool lies_between(const Object* o, const Object* a, const Object* b) { return a < b ? a <= o && o <= b : b <= o && o <= a; }

}  // namespace

Object* link_fresh(void* fresh, std::uint32_t count, Bytes size) {
    char* at = static_cast<char*>(fresh);
    for (char* const last = at + (count - 1) * size; at != last; at += size)
        reinterpret_cast<Object*>(at)->next = reinterpret_cast<Object*>(at + size);
    reinterpret_cast<Object*>(at)->next = nullptr;
    return static_cast<Object*>(fresh);
}

// The bag of the first object, whose shard's lock is to be taken: asked of it here, before it may be anything.
const Bag& ClassHeap::home_of(Batch list) const {
    const std::uint64_t b = (address_of(list.head) - region().start()) >> bag_shift;
    if (NUMALLOC_UNLIKELY(b >= region().committed())) die_of_damage(list.head);
    // All objects of the bag are free already, and this one was once more.
    if (NUMALLOC_UNLIKELY(region().class_at(BagIndex{b}) != class_)) die_of_second_free(list.head);
    return region().bag(region().head_of(BagIndex{b}));
}

void ClassHeap::Held::release() {
    if (shard_ != nullptr) shard_->lock.unlock();
    shard_ = nullptr;
}

void ClassHeap::Held::hold(unsigned shard) {
    if (shard_ != nullptr && number_ == shard) return;
    release();
    NUMALLOC_ASSERT(shard < most_shards && heap_.shards_.is_open(shard));
    number_ = shard;
    shard_ = &heap_.shard(shard);
    shard_->lock.lock();
}

void ClassHeap::Held::hold_shard_of(const Bag& bag) {
    do hold(shard_number(bag));
    while (!is_of(bag));
}

// Less than half of what the shard's bags hold is in use, beyond a bag of slack.
bool ClassHeap::sparse(const Shard& shard) const {
    const std::uint64_t objects = shape().objects;
    return shard.bags * objects > 2 * shard.taken + objects;
}

// More than an eighth is not in use, beyond a bag of slack: others may have of it before they take
// new memory.
bool ClassHeap::can_spare(const Shard& shard) const {
    const std::uint64_t objects = shape().objects;
    return shard.bags * objects * 7 > 8 * shard.taken + 7 * objects;
}

// Lists that each shard's ring may hold: two or three shards (a main thread and two that work) have a whole
// ring each, more have two rings' worth together; but each may hold a list, unless that is one large object.
std::uint32_t ClassHeap::ring_room() const {
    const std::uint32_t room = shape().ring / max_of(shards_.count() / 2, 1U);
    return shape().batch > 1 ? max_of(room, min_of<std::uint32_t>(shape().ring, 1)) : room;
}

void ClassHeap::enlist(Shard& shard, std::uint32_t b) {
    Bag::Small& s = bag(b).small;
    s.next = shard.partial;
    s.previous = no_bag;
    s.listed = 1;
    (shard.partial != no_bag ? bag(shard.partial).small.previous : shard.last_partial) = b;
    shard.partial = b;
}

void ClassHeap::unlist(Shard& shard, std::uint32_t b) {
    Bag::Small& s = bag(b).small;
    if (s.listed == 0) return;
    (s.previous != no_bag ? bag(s.previous).small.next : shard.partial) = s.next;
    (s.next != no_bag ? bag(s.next).small.previous : shard.last_partial) = s.previous;
    s.listed = 0;
}

// Freed objects of as many bags as it takes. Walks the lists, whose objects the caller is about
// to hand out anyway.
Supply ClassHeap::take_freed(Shard& shard, std::uint32_t want) {
    Supply supply;
    while (shard.partial != no_bag && supply.count < want) {
        const std::uint32_t b = shard.partial;
        Bag& from = bag(b);
        Object* const first = from.small.free;
        Object* last = first;
        std::uint32_t count = 1;
        for (; last->next != nullptr && supply.count + count < want; ++count) last = last->next;
        os::count_walked(count);
        from.small.free = last->next;
        last->next = supply.list;
        supply.list = first;
        supply.count += count;
        from.small.free_count = static_cast<std::uint16_t>(from.small.free_count - count);
        from.taken = static_cast<std::uint16_t>(from.taken + count);
        if (from.small.free == nullptr) unlist(shard, b);
    }
    shard.taken += supply.count;
    return supply;
}

Supply ClassHeap::carve(Shard& shard, std::uint32_t want) {
    Bag& from = bag(shard.carving);
    const std::uint32_t left = std::uint32_t{shape().objects} - from.small.carved;
    const std::uint32_t count = min_of(want, left);
    const Address first = address_of(region().address(BagIndex{shard.carving})) + Bytes{from.small.carved} * shape().size;
    __atomic_store_n(&from.small.carved, static_cast<std::uint16_t>(from.small.carved + count), __ATOMIC_RELAXED);
    from.taken = static_cast<std::uint16_t>(from.taken + count);
    shard.taken += count;
    if (count == left) shard.carving = no_bag;
    return {nullptr, reinterpret_cast<void*>(first), count, region().is_zero(reinterpret_cast<void*>(first), count * shape().size)};
}

bool ClassHeap::add_bag(unsigned number) {
    Shard& own = shard(number);
    const BagIndex taken = pages_.take_small(shape().bags, class_, page_owner(class_, number));
    if (taken == PageHeap::none) return false;
    own.carving = taken.value;
    ++own.bags;
    Bag& added = region().bag(taken);
    added.taken = 0;
    added.small = {};
    added.small.shard = static_cast<std::uint8_t>(number);
    region().mark_inside(taken, shape().bags);
    region().set_class(taken, shape().bags, class_);
    return true;
}

// A bag of another shard, its emptiest if they were freed in order, becomes one of `number`, which has none
// to take from. A shard that is in use just now is passed over: nobody waits for two locks.
bool ClassHeap::adopt(unsigned number) {
    Shard& own = shard(number);
    for (unsigned i = 0; i < most_shards; ++i) {
        Shard& other = shard(i);
        if (i == number || !shards_.is_open(i)) continue;
        os::count(os::Count::foreign_try_locks);
        if (!other.lock.try_lock()) continue;
        const std::uint32_t b = !can_spare(other) ? no_bag : other.last_partial != no_bag ? other.last_partial : other.carving;
        if (b != no_bag) {
            Bag& moves = bag(b);
            const bool listed = moves.small.listed != 0;
            unlist(other, b);
            if (other.carving == b) {
                other.carving = no_bag;
                own.carving = b;
            }
            --other.bags;
            other.taken -= moves.taken;
            ++own.bags;
            own.taken += moves.taken;
            __atomic_store_n(&moves.small.shard, static_cast<std::uint8_t>(number), __ATOMIC_RELAXED);
            if (listed) enlist(own, b);
        }
        other.lock.unlock();
        if (b != no_bag) return true;
    }
    return false;
}

Supply ClassHeap::take_from(Shard& shard, std::uint32_t want) {
    const Batch list = shard.ring.pop_newest();
    if (list.head != nullptr) return {list.head, nullptr, list.count, false};
    if (shard.partial != no_bag) return take_freed(shard, want);
    return shard.carving != no_bag ? carve(shard, want) : Supply{};
}

Supply ClassHeap::take(std::uint32_t want, unsigned number) {
    os::count(os::Count::refills);
    {
        NUMALLOC_ASSERT(shards_.is_open(number));
        Shard& own = shard(number);
        os::Guard guard(own.lock);
        own.set(Shard::used);
        Supply supply = take_from(own, want);
        if (supply.count == 0 && ((pages_.shares_huge_pages() && adopt(number)) || add_bag(number))) supply = take_from(own, want);
        if (supply.count != 0) return supply;
    }
    // No memory: whatever is left to the others.
    for (unsigned i = 0; i < most_shards; ++i) {
        if (!shards_.is_open(i)) continue;
        os::Guard guard(shard(i).lock);
        const Supply supply = take_from(shard(i), want);
        if (supply.count != 0) return supply;
    }
    return {};
}

void ClassHeap::give_if_empty(Shard& shard, std::uint32_t b, Emptied& emptied) {
    Bag& empty = bag(b);
    if (empty.taken != 0) return;
    unlist(shard, b);
    if (shard.carving == b) shard.carving = no_bag;
    region().set_class(BagIndex{b}, shape().bags, no_class);
    --shard.bags;
    empty.small.next = emptied.first;
    emptied.first = b;
}

// Without the lock: a handler of SIGABRT may allocate.
void ClassHeap::die_in_sort(Held& held, void (*die)(const void*), const void* p) {
    held.release();
    die(p);
    __builtin_unreachable();
}

// Objects in a row that lie in one bag go to it as they are linked, in a loop that only reads: programs
// mostly free in the order in which they allocated, or in its reverse. The lock of the last one's shard
// is held in the end.
void ClassHeap::sort(Batch list, Held& held, Emptied& emptied) {
    const bool long_bags = shape().bags > 1;
    const Bytes bytes = Bytes{shape().bags} << bag_shift;
    const Bytes size = shape().size;
    const Bytes objects_bytes = size * shape().objects;
    const ObjectCheck check(region(), class_);
    const Object* before = list.head;
    Object* object = list.head;
    os::count(os::Count::locked_sorts);
    while (object != nullptr) {
        if (NUMALLOC_UNLIKELY(!check.in_class(object))) die_in_sort(held, die_of_damage, before);
        BagIndex b = region().bag_of(object);
        if (long_bags) b = region().head_of(b);
        Bag& home = region().bag(b);
        const Address start = address_of(region().address(b));
        if (NUMALLOC_UNLIKELY(!held.is_of(home))) held.hold_shard_of(home);
        Object* const free = home.small.free;
        const std::uint32_t taken = home.taken;
        NUMALLOC_ASSERT(home.state == BagState::small && home.class_id == class_.value);
        Object* const first = object;
        Object* last = object;
        std::uint32_t run = 0;
        do {
            if (NUMALLOC_UNLIKELY(!check.starts_object(object, start))) die_in_sort(held, die_of_interior, object);
            if (NUMALLOC_UNLIKELY(object == free || run == taken)) die_in_sort(held, die_of_second_free, object);
            ++run;
            last = object;
            // Objects in a row of addresses as well, up or down, begin where objects do.
            const Bytes step = address_of(object->next) - address_of(object);
            if (step == size || step == 0 - size) {
                last = last_in_row(object, step, step == size ? start + objects_bytes : start - size, run);
                if (NUMALLOC_UNLIKELY(run > taken || lies_between(free, object, last))) die_in_sort(held, die_of_second_free, object);
            }
            object = last->next;
        } while (address_of(object) - start < bytes);
        before = last;
        os::count_walked(run);
        last->next = free;
        home.small.free = first;
        home.small.free_count = static_cast<std::uint16_t>(home.small.free_count + run);
        home.taken = static_cast<std::uint16_t>(taken - run);
        held->taken -= run;
        held->set(Shard::used);
        if (home.small.listed == 0) enlist(*held, b.value);
        // The bag being carved is kept while it is short: the next allocation would ask for it
        // again. drain() lets go of it.
        if (home.taken == 0 && (held->carving != b.value || long_bags)) give_if_empty(*held, b.value, emptied);
    }
}

void ClassHeap::give(const Emptied& emptied) {
    for (std::uint32_t b = emptied.first; b != no_bag;) {
        const std::uint32_t next = bag(b).small.next;
        pages_.give(BagIndex{b});
        b = next;
    }
}

// Looking for an object that was freed twice costs a walk of its own: one list in 32, the first among them.
void ClassHeap::check_some(const Bag& home, Batch list) {
    if (__atomic_fetch_add(&shard(shard_number(home)).lists_put, 1, __ATOMIC_RELAXED) % lists_per_walk == 0)
        check_list(region(), class_, list);
}

std::uint32_t ClassHeap::put(Batch list) {
    os::count(os::Count::hand_overs);
    const Bag& home = home_of(list);
    check_some(home, list);
    Emptied emptied;
    std::uint32_t keep = shape().batch;
    const std::uint32_t room = ring_room();
    {
        Held held(*this);
        held.hold_shard_of(home);
        const unsigned own = held.number();
        held->set(Shard::used);
        if (sparse(*held)) {
            sort(list, held, emptied);
            held.hold(own);
            if (held->taken <= held->flush_below) {
                for (Batch l; (l = held->ring.pop_newest()).head != nullptr; held.hold(own)) sort(l, held, emptied);
                held->flush_below = held->taken / 4 * 3;
            }
            keep = static_cast<std::uint32_t>(max_of<std::uint64_t>(1, min_of<std::uint64_t>(keep, held->taken / 16)));
        } else {
            held->flush_below = held->taken;
            for (; !held->ring.empty() && held->ring.size() >= room; held.hold(own)) sort(held->ring.pop_oldest(), held, emptied);
            if (held->ring.size() < room) held->ring.push(list);
            else sort(list, held, emptied);
        }
    }
    give(emptied);
    return keep;
}

void ClassHeap::give_last(Batch list) {
    os::count(os::Count::hand_overs);
    const Bag& home = home_of(list);
    check_some(home, list);
    {
        Held held(*this);
        held.hold_shard_of(home);
        if (!sparse(*held) && held->ring.empty() && ring_room() > 0) {
            held->ring.push(list);
            held->set(Shard::used);
            return;
        }
    }
    give_to_bags(list);
}

void ClassHeap::give_to_bags(Batch list) {
    check_list(region(), class_, list);
    Emptied emptied;
    {
        Held held(*this);
        sort(list, held, emptied);
    }
    give(emptied);
}

void ClassHeap::give_carved(unsigned number) {
    Emptied emptied;
    {
        Held held(*this);
        held.hold(number);
        if (held->carving != no_bag) give_if_empty(*held, held->carving, emptied);
    }
    give(emptied);
}

void ClassHeap::drain(bool idle_only) {
    Emptied emptied;
    {
        Held held(*this);
        std::uint32_t drained = 0;
        for (unsigned i = 0; i < most_shards; ++i) {
            if (!shards_.is_open(i) || shard(i).state() == Shard::drained) continue;
            held.hold(i);
            const bool used = held->state() == Shard::used;
            held->set(idle_only && used ? Shard::resting : Shard::drained);
            if (idle_only && used) continue;
            drained |= 1U << i;
            for (; !held->ring.empty(); held.hold(i)) sort(held->ring.pop_oldest(), held, emptied);
        }
        // Only now: a list may have had objects of any shard's bag, of one that was passed over as well.
        for (unsigned i = 0; i < most_shards; ++i) {
            const bool sorted_into = !idle_only && shards_.is_open(i) && shard(i).state() == Shard::used;
            if ((drained >> i & 1) == 0 && !sorted_into) continue;
            held.hold(i);
            if (held->carving != no_bag) give_if_empty(*held, held->carving, emptied);
            const BagIndex rest = idle_only ? PageHeap::none : pages_.give_rest(page_owner(class_, i));
            if (rest == PageHeap::none) continue;
            bag(rest.value).small.next = emptied.first;
            emptied.first = rest.value;
        }
    }
    give(emptied);
}

const char* ClassHeap::why_invalid(const Region& region, ClassId c, const void* p) {
    const BagIndex head = region.head_of(region.bag_of(p));
    const Bytes offset = address_of(p) - address_of(region.address(head));
    const unsigned index = object_at(c, offset);
    if (offset != Bytes{index} * shape_of(c).size || index >= shape_of(c).objects)
        return "points inside an object, not at its start";
    if (index >= __atomic_load_n(&region.bag(head).small.carved, __ATOMIC_RELAXED))
        return "was never allocated";
    return nullptr;
}

ClassUse ClassHeap::use() const {
    ClassUse use;
    for (unsigned i = 0; i < most_shards; ++i) {
        if (!shards_.is_open(i)) continue;
        Shard& s = shard(i);
        os::Guard guard(s.lock);
        use.taken += s.taken;
        use.ring += s.ring.objects();
        use.bags += s.bags;
    }
    return use;
}

void ClassHeap::validate() const {
    if constexpr (checks_enabled) {
        for (unsigned i = 0; i < most_shards; ++i) {
            os::Guard guard(shard(i).lock);
            std::uint32_t previous = no_bag;
            for (std::uint32_t b = shard(i).partial; b != no_bag; b = bag(b).small.next) {
                const Bag& listed = bag(b);
                NUMALLOC_ASSERT(listed.state == BagState::small && listed.class_id == class_.value && listed.small.shard == i);
                NUMALLOC_ASSERT(listed.small.listed != 0 && listed.small.free_count > 0 && listed.small.previous == previous);
                NUMALLOC_ASSERT(listed.taken + listed.small.free_count == listed.small.carved);
                NUMALLOC_ASSERT(listed.small.carved <= shape().objects);
                std::uint32_t count = 0;
                for (const Object* o = listed.small.free; o != nullptr; o = o->next) ++count;
                NUMALLOC_ASSERT(count == listed.small.free_count);
                previous = b;
            }
            NUMALLOC_ASSERT(shard(i).last_partial == previous);
        }
    }
}

}  // namespace numalloc

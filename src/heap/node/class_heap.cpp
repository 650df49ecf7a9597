#include "heap/node/class_heap.h"

#include "base/check.h"
#include "heap/node/list_check.h"

namespace numalloc {

namespace {

// Whose huge pages a share's bags come from, where incremental sharing is off.
constexpr std::uint32_t page_owner(ClassId c, unsigned share) { return c.value * class_shares + share; }

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

// Less than half of what the share's bags hold is in use, beyond a bag of slack.
bool ClassHeap::sparse(const Share& share, ClassId c) {
    const std::uint64_t objects = shape_of(c).objects;
    return share.bags * objects > 2 * share.taken + objects;
}

// More than an eighth is not in use, beyond a bag of slack: others may have of it before they take
// new memory.
bool ClassHeap::can_spare(const Share& share, ClassId c) {
    const std::uint64_t objects = shape_of(c).objects;
    return share.bags * objects * 7 > 8 * share.taken + 7 * objects;
}

void ClassHeap::enlist(Region& region, std::uint32_t b) {
    Bag::Small& s = region.bag(BagIndex{b}).small;
    Share& share = shares_[s.share];
    s.next = share.partial;
    s.previous = no_bag;
    s.listed = 1;
    (share.partial != no_bag ? region.bag(BagIndex{share.partial}).small.previous : share.last_partial) = b;
    share.partial = b;
}

void ClassHeap::unlist(Region& region, std::uint32_t b) {
    Bag::Small& s = region.bag(BagIndex{b}).small;
    if (s.listed == 0) return;
    Share& share = shares_[s.share];
    (s.previous != no_bag ? region.bag(BagIndex{s.previous}).small.next : share.partial) = s.next;
    (s.next != no_bag ? region.bag(BagIndex{s.next}).small.previous : share.last_partial) = s.previous;
    s.listed = 0;
}

// Freed objects of as many bags as it takes. Walks the lists, whose objects the caller is about
// to hand out anyway.
Supply ClassHeap::take_freed(Region& region, Share& share, std::uint32_t want) {
    Supply supply;
    while (share.partial != no_bag && supply.count < want) {
        const std::uint32_t b = share.partial;
        Bag& bag = region.bag(BagIndex{b});
        Object* const first = bag.small.free;
        Object* last = first;
        std::uint32_t count = 1;
        for (; last->next != nullptr && supply.count + count < want; ++count) last = last->next;
        bag.small.free = last->next;
        last->next = supply.list;
        supply.list = first;
        supply.count += count;
        bag.small.free_count = static_cast<std::uint16_t>(bag.small.free_count - count);
        bag.taken = static_cast<std::uint16_t>(bag.taken + count);
        if (bag.small.free == nullptr) unlist(region, b);
    }
    share.taken += supply.count;
    return supply;
}

Supply ClassHeap::carve(Region& region, ClassId c, Share& share, std::uint32_t want) {
    const ClassShape& shape = shape_of(c);
    Bag& bag = region.bag(BagIndex{share.carving});
    const std::uint32_t left = std::uint32_t{shape.objects} - bag.small.carved;
    const std::uint32_t count = min_of(want, left);
    const Address first = address_of(region.address(BagIndex{share.carving})) + Bytes{bag.small.carved} * shape.size;
    __atomic_store_n(&bag.small.carved, static_cast<std::uint16_t>(bag.small.carved + count), __ATOMIC_RELAXED);
    bag.taken = static_cast<std::uint16_t>(bag.taken + count);
    share.taken += count;
    if (count == left) share.carving = no_bag;
    return {nullptr, reinterpret_cast<void*>(first), count, bag.small.zeroed != 0};
}

bool ClassHeap::add_bag(BigHeap& big, ClassId c, unsigned share) {
    Region& region = big.region();
    const ClassShape& shape = shape_of(c);
    bool zeroed = false;
    const BagIndex taken = big.take_small(shape.bags, &zeroed, c, page_owner(c, share));
    if (taken == BigHeap::none) return false;
    shares_[share].carving = taken.value;
    ++shares_[share].bags;
    Bag& bag = region.bag(taken);
    bag.taken = 0;
    bag.small = {};
    bag.small.zeroed = zeroed;
    bag.small.share = static_cast<std::uint8_t>(share);
    region.mark_inside(taken, shape.bags);
    region.set_class(taken, shape.bags, c);
    return true;
}

// A bag of another share, its emptiest if they were freed in order, becomes one of `share`, which
// has none to take from.
bool ClassHeap::adopt(Region& region, ClassId c, unsigned share, bool at_any_price) {
    Share& own = shares_[share];
    for (Share& other : shares_) {
        if (&other == &own || other.bags == 0 || !(at_any_price || can_spare(other, c))) continue;
        const std::uint32_t b = other.last_partial != no_bag ? other.last_partial : other.carving;
        if (b == no_bag) continue;
        Bag& bag = region.bag(BagIndex{b});
        const bool listed = bag.small.listed != 0;
        unlist(region, b);
        if (other.carving == b) {
            other.carving = no_bag;
            own.carving = b;
        }
        --other.bags;
        other.taken -= bag.taken;
        ++own.bags;
        own.taken += bag.taken;
        __atomic_store_n(&bag.small.share, static_cast<std::uint8_t>(share), __ATOMIC_RELAXED);
        if (listed) enlist(region, b);
        return true;
    }
    return false;
}

Supply ClassHeap::take(BigHeap& big, ClassId c, std::uint32_t want, unsigned share) {
    os::Guard guard(lock_);
    Region& region = big.region();
    Share& own = shares_[share];
    ring_used_ = true;
    SubList list = ring_.pop_newest(share);
    if (list.head == nullptr && own.partial == no_bag && own.carving == no_bag &&
        !(big.shares_huge_pages() && adopt(region, c, share, false)) && !add_bag(big, c, share)) {
        // No memory: whatever is left here.
        if (!ring_.empty()) list = ring_.pop_oldest();
        else if (!adopt(region, c, share, true)) return {};
    }
    if (list.head != nullptr) return {list.head, nullptr, list.count, false};
    return own.partial != no_bag ? take_freed(region, own, want) : carve(region, c, own, want);
}

void ClassHeap::release_if_empty(Region& region, ClassId c, std::uint32_t b, Emptied& emptied) {
    Bag& bag = region.bag(BagIndex{b});
    if (bag.taken != 0) return;
    unlist(region, b);
    Share& share = shares_[bag.small.share];
    if (share.carving == b) share.carving = no_bag;
    region.set_class(BagIndex{b}, shape_of(c).bags, no_class);
    --share.bags;
    bag.small.next = emptied.first;
    emptied.first = b;
}

// Without the lock: a handler of SIGABRT may allocate.
void ClassHeap::die_in_sort(void (*die)(const void*), const void* p) {
    lock_.unlock();
    die(p);
    __builtin_unreachable();
}

// Objects in a row that lie in one bag go to it as they are linked, in a loop that only reads: programs
// mostly free in the order in which they allocated, or in its reverse.
void ClassHeap::sort(Region& region, ClassId c, SubList list, Emptied& emptied) {
    const ClassShape& shape = shape_of(c);
    const bool long_bags = shape.bags > 1;
    const Bytes bytes = Bytes{shape.bags} << bag_shift;
    const Bytes size = shape.size;
    const Bytes objects_bytes = size * shape.objects;
    const ObjectCheck check(region, c);
    const Object* before = list.head;
    Object* object = list.head;
    // Counted until the share changes: it seldom does.
    unsigned share = list.share;
    std::uint32_t count = 0;
    while (object != nullptr) {
        if (NUMALLOC_UNLIKELY(!check.in_class(object))) die_in_sort(die_of_damage, before);
        BagIndex b = region.bag_of(object);
        if (long_bags) b = region.head_of(b);
        Bag& bag = region.bag(b);
        const Address start = address_of(region.address(b));
        Object* const free = bag.small.free;
        const std::uint32_t taken = bag.taken;
        NUMALLOC_ASSERT(bag.state == BagState::small && bag.class_id == c.value);
        Object* const first = object;
        Object* last = object;
        std::uint32_t run = 0;
        do {
            if (NUMALLOC_UNLIKELY(!check.starts_object(object, start))) die_in_sort(die_of_interior, object);
            if (NUMALLOC_UNLIKELY(object == free || run == taken)) die_in_sort(die_of_second_free, object);
            ++run;
            last = object;
            // Objects in a row of addresses as well, up or down, begin where objects do.
            const Bytes step = address_of(object->next) - address_of(object);
            if (step == size || step == 0 - size) {
                last = last_in_row(object, step, step == size ? start + objects_bytes : start - size, run);
                if (NUMALLOC_UNLIKELY(run > taken || lies_between(free, object, last))) die_in_sort(die_of_second_free, object);
            }
            object = last->next;
        } while (address_of(object) - start < bytes);
        before = last;
        last->next = free;
        bag.small.free = first;
        bag.small.free_count = static_cast<std::uint16_t>(bag.small.free_count + run);
        bag.taken = static_cast<std::uint16_t>(taken - run);
        if (NUMALLOC_UNLIKELY(bag.small.share != share)) {
            shares_[share].taken -= count;
            share = bag.small.share;
            count = 0;
        }
        count += run;
        if (bag.small.listed == 0) enlist(region, b.value);
        // The bag being carved is kept while it is short: the next allocation would ask for it
        // again. drain() lets go of it.
        if (bag.taken == 0 && (shares_[share].carving != b.value || long_bags)) release_if_empty(region, c, b.value, emptied);
    }
    shares_[share].taken -= count;
}

void ClassHeap::give(BigHeap& big, const Emptied& emptied) {
    for (std::uint32_t b = emptied.first; b != no_bag;) {
        const std::uint32_t next = big.region().bag(BagIndex{b}).small.next;
        big.give(BagIndex{b});
        b = next;
    }
}

// Read without the lock, it may be out of date by the time it is used: nothing hangs on it.
std::uint8_t ClassHeap::share_of(const Region& region, SubList list) {
    return __atomic_load_n(&region.bag(region.head_of(region.bag_of(list.head))).small.share, __ATOMIC_RELAXED);
}

std::uint32_t ClassHeap::put(BigHeap& big, ClassId c, SubList list) {
    // Looking for a ring costs a walk of its own: one list in 32, the first among them.
    if (__atomic_fetch_add(&lists_put_, 1, __ATOMIC_RELAXED) % lists_per_walk == 0) check_list(big.region(), c, list);
    const ClassShape& shape = shape_of(c);
    Region& region = big.region();
    Emptied emptied;
    std::uint32_t keep = shape.batch;
    list.share = share_of(region, list);
    lock_.lock();
    Share& share = shares_[list.share];
    ring_used_ = true;
    if (sparse(share, c)) {
        sort(region, c, list, emptied);
        if (share.taken <= share.flush_below) {
            for (SubList l; (l = ring_.pop_newest(list.share)).head != nullptr;) sort(region, c, l, emptied);
            share.flush_below = share.taken / 4 * 3;
        }
        keep = static_cast<std::uint32_t>(max_of<std::uint64_t>(1, min_of<std::uint64_t>(keep, share.taken / 16)));
    } else {
        share.flush_below = share.taken;
        if (ring_.size() >= shape.ring && !ring_.empty()) sort(region, c, ring_.pop_oldest(), emptied);
        if (shape.ring > 0) ring_.push(list);
        else sort(region, c, list, emptied);
    }
    lock_.unlock();
    give(big, emptied);
    return keep;
}

void ClassHeap::put_last(BigHeap& big, ClassId c, SubList list) {
    check_list(big.region(), c, list);
    Emptied emptied;
    list.share = share_of(big.region(), list);
    {
        os::Guard guard(lock_);
        if (sparse(shares_[list.share], c) || ring_.size() >= shape_of(c).ring || ring_.has(list.share)) sort(big.region(), c, list, emptied);
        else ring_.push(list);
    }
    give(big, emptied);
}

void ClassHeap::put_into_bags(BigHeap& big, ClassId c, SubList list) {
    check_list(big.region(), c, list);
    Emptied emptied;
    {
        os::Guard guard(lock_);
        sort(big.region(), c, list, emptied);
    }
    give(big, emptied);
}

void ClassHeap::drain(BigHeap& big, ClassId c, bool idle_only) {
    Emptied emptied;
    {
        os::Guard guard(lock_);
        const bool used = ring_used_;
        ring_used_ = false;
        if (idle_only && used) return;
        while (!ring_.empty()) sort(big.region(), c, ring_.pop_oldest(), emptied);
        for (const Share& share : shares_)
            if (share.carving != no_bag) release_if_empty(big.region(), c, share.carving, emptied);
        for (unsigned i = 0; !idle_only && i < class_shares; ++i) {
            const BagIndex rest = big.keep_nothing(page_owner(c, i));
            if (rest == BigHeap::none) continue;
            big.region().bag(rest).small.next = emptied.first;
            emptied.first = rest.value;
        }
    }
    give(big, emptied);
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

ClassUse ClassHeap::use() {
    os::Guard guard(lock_);
    ClassUse use{0, ring_.objects(), 0};
    for (const Share& share : shares_) {
        use.taken += share.taken;
        use.bags += share.bags;
    }
    return use;
}

void ClassHeap::validate(const BigHeap& big, ClassId c) {
    if constexpr (checks_enabled) {
        os::Guard guard(lock_);
        const Region& region = big.region();
        for (unsigned i = 0; i < class_shares; ++i) {
            std::uint32_t previous = no_bag;
            for (std::uint32_t b = shares_[i].partial; b != no_bag; b = region.bag(BagIndex{b}).small.next) {
                const Bag& bag = region.bag(BagIndex{b});
                NUMALLOC_ASSERT(bag.state == BagState::small && bag.class_id == c.value && bag.small.share == i);
                NUMALLOC_ASSERT(bag.small.listed != 0 && bag.small.free_count > 0 && bag.small.previous == previous);
                NUMALLOC_ASSERT(bag.taken + bag.small.free_count == bag.small.carved);
                NUMALLOC_ASSERT(bag.small.carved <= shape_of(c).objects);
                std::uint32_t count = 0;
                for (const Object* o = bag.small.free; o != nullptr; o = o->next) ++count;
                NUMALLOC_ASSERT(count == bag.small.free_count);
                previous = b;
            }
            NUMALLOC_ASSERT(shares_[i].last_partial == previous);
        }
    }
}

}  // namespace numalloc

#include "heap/central/class_heap.h"

#include "base/check.h"
#include "heap/central/list_check.h"
#include "heap/space/mark.h"

namespace numalloc {

namespace policy::rings {

// Up to three shards (a main thread and two workers) have a whole ring each. More shards share the room of two rings.
constexpr unsigned of_many_shards = 2;
// From 4 KiB on a batch has few objects, so a ring has room for at least four lists: with fewer, threads take the
// shard's lock more often.
constexpr Bytes short_lists_from = 4 * KiB;
constexpr unsigned least_lists = 4;

// The ring that all shards of a large class share holds at most 1/6 of the class's bags. With less, threads take the
// shards' locks more often; with more, it keeps more unused memory.
constexpr Bytes common_part = 6;
// A large object may come from a class above its own, if it is at most 1.5 times as long: more than half of it is used,
// so a realloc() to a similar size leaves it in place.
constexpr Fraction most_longer{3, 2};

// One of 32 lists that threads return to a shard, the first included, is walked to find an object that was freed twice:
// a walk reads every object, which most lists should not pay for.
constexpr std::uint32_t lists_per_walk = 32;

}  // namespace policy::rings

namespace policy::shards {

// A shard is sparse if less than half of its objects are in use. Objects freed to it go to their bags at once, so that
// bags become empty.
constexpr Fraction sparse_below{1, 2};
// A sparse shard empties its ring each time its objects in use have fallen to 3/4 of what they were.
constexpr Fraction flushed_below{3, 4};
// A thread keeps at most 1/16 of a sparse shard's objects in use: each kept object holds a whole bag.
constexpr std::uint64_t kept_of_sparse = 16;
// A shard of which less than 7/8 is in use hands bags to other shards before these take new memory.
constexpr Fraction spares_below{7, 8};

}  // namespace policy::shards

namespace {

std::uint64_t bags_of(const Shard& shard) { return shard.bags.load(std::memory_order_relaxed); }
std::uint64_t taken_of(const Shard& shard) { return shard.taken.load(std::memory_order_relaxed); }

}  // namespace

Object* link_fresh(void* fresh, std::uint32_t count, Bytes size) {
    if constexpr (hardened) return link_shuffled(fresh, count, size);
    char* at = static_cast<char*>(fresh);
    for (char* const last = at + (count - 1) * size; at != last; at += size) {
        reinterpret_cast<Object*>(at)->next = reinterpret_cast<Object*>(at + size);
        make_freed(reinterpret_cast<Object*>(at), size);
    }
    reinterpret_cast<Object*>(at)->next = nullptr;
    make_freed(reinterpret_cast<Object*>(at), size);
    return static_cast<Object*>(fresh);
}

// The bag of the list's first object, which decides the list's shard. Checks the address, which may be anything.
const Bag& ClassHeap::home_of(Batch list) const {
    const std::uint64_t b = (address_of(list.head) - region().start()) >> bag_shift;
    if (NUMALLOC_UNLIKELY(b >= region().committed())) die_of_damage(list.head);
    // The bag was empty and returned already: this object was freed once more.
    if (NUMALLOC_UNLIKELY(region().class_at(BagIndex{b}) != class_)) die_of_second_free(list.head);
    return region().bag(region().head_of(BagIndex{b}));
}

// Whether less than `part` of the objects in the shard's bags is in use, not counting one bag of slack.
bool ClassHeap::has_in_use_below(policy::Fraction part, const Shard& shard) const {
    const std::uint64_t objects = shape().objects;
    return bags_of(shard) * objects * part.of > part.parts * taken_of(shard) + part.of * objects;
}

bool ClassHeap::sparse(const Shard& shard) const { return has_in_use_below(policy::shards::sparse_below, shard); }
bool ClassHeap::can_spare(const Shard& shard) const { return has_in_use_below(policy::shards::spares_below, shard); }

// Lets other shards skip the lock of a shard that has no bag to spare. May be out of date for a moment.
void ClassHeap::note_spare(unsigned number) { set_bit(common().spare, number, can_spare(shard(number))); }

// The number of lists that each shard's ring may hold. Up to three shards (a main thread and two workers) have a whole
// ring each; more share the room of two, but each has room for some lists. Large objects (a batch is one object) go to
// the ring that all shards share. Lists shorter than a batch, which a node with many threads has, get proportionally
// more room.
std::uint32_t ClassHeap::ring_room(std::uint32_t objects) const {
    if (shape().batch == 1) return 0;
    const std::uint32_t share = shape().ring / max_of(shards_.count() / policy::rings::of_many_shards, 1U);
    const std::uint32_t room =
        max_of(share, shape().size >= policy::rings::short_lists_from ? policy::rings::least_lists : 1U);
    return min_of(room * max_of(shape().batch / max_of(objects, 1U), 1U), policy::rings::slots);
}

// The number of large objects that the common ring may hold: a part of the class's bags, so none in a small program.
// The ring evens out what some threads free and others allocate. Smaller objects have none: shards would mix their
// objects in each other's bags, which no phase of the program would then empty.
std::uint32_t ClassHeap::common_room() const {
    if (shape().batch > 1) return 0;
    const Bytes bytes = Bytes{common().bags.load(std::memory_order_relaxed)} * shape().bags << bag_shift;
    return static_cast<std::uint32_t>(
        min_of<Bytes>(bytes / policy::rings::common_part / shape().size, policy::rings::slots));
}

// Walks a shard's first list, and then one in policy::rings::lists_per_walk, to find an object that was freed twice.
void ClassHeap::check_some(Shard& shard, Batch list) {
    const std::uint32_t before = shard.lists_put.fetch_add(1, std::memory_order_relaxed);
    if (before % policy::rings::lists_per_walk == 0) check_list(region(), class_, list);
}

// Takes a list from the shard's ring; for large objects, also from the ring that all shards share.
Batch ClassHeap::take_list(Shard& shard) {
    if (const Batch list = shard.ring.pop_newest(); list.head != nullptr) return list;
    if (shape().batch > 1) return {};
    const Batch list = common().ring.pop_newest();
    if (list.head != nullptr) os::count(os::Count::common_lists);
    return list;
}

// An unused object of one of the next larger classes. That is cheaper than finding bags, and maybe faulting them in,
// while the object stays unused. It is aligned like an object of this class, if not better.
Batch ClassHeap::take_larger() {
    const Bytes most = policy::rings::most_longer.part_of(shape().size);
    for (unsigned c = class_.value + 1U; c < first_aligned && size_of_class(c) <= most; ++c) {
        const Batch list = shards_.common(ClassId{c}).ring.pop_newest();
        if (list.head == nullptr) continue;
        // Only one: the others must not enter a list of this class.
        if (list.head->next != nullptr)
            ClassHeap{shards_, pages_, ClassId{c}}.give_to_bags({list.head->next, list.count - 1});
        list.head->next = nullptr;
        os::count(os::Count::common_lists);
        return {list.head, 1};
    }
    return {};
}

Supply ClassHeap::take(std::uint32_t want, unsigned number) {
    number = shard_for(number);
    const Supply supply = take_any(want, number);
    shard(number).fetched.fetch_add(supply.count, std::memory_order_relaxed);
    return supply;
}

Supply ClassHeap::take_any(std::uint32_t want, unsigned number) {
    os::count(os::Count::refills);
    NUMALLOC_ASSERT(shards_.is_open(number));
    Shard& own = shard(number);
    own.activity.note_use();
    Batch list = take_list(own);
    // A hardened object has its canary at the end of its own class, so it must be of the requested class.
    if (list.head == nullptr && shape().batch == 1 && !hardened) list = take_larger();
    if (list.head != nullptr) return {list.head, nullptr, list.count, false};
    if (const Supply supply = take_from_bags(want, number, true); supply.count != 0) return supply;
    // No memory: take what other shards have left.
    for (unsigned i = 0; i < shards_.end(); ++i) {
        if (!shards_.is_open(i)) continue;
        if (list = take_list(shard(i)); list.head != nullptr) return {list.head, nullptr, list.count, false};
        if (const Supply supply = take_from_bags(want, i, false); supply.count != 0) return supply;
    }
    return {};
}

// Takes a new bag without the lock, because that may call the kernel. If other threads have freed objects by then, the
// new bag is returned.
Supply ClassHeap::take_from_bags(std::uint32_t want, unsigned number, bool or_add) {
    BagIndex fresh = PageHeap::none;
    Supply supply = try_bags(want, number, or_add, fresh);
    if (supply.count == 0 && or_add) {
        fresh = pages_.take_small(shape().bags, class_, class_.value * policy::shards::most + number);
        if (fresh != PageHeap::none) supply = try_bags(want, number, false, fresh);
    }
    if (fresh != PageHeap::none) pages_.give(fresh);
    return supply;
}

Supply ClassHeap::try_bags(std::uint32_t want, unsigned number, bool or_add, BagIndex& fresh) {
    Shard& shard = this->shard(number);
    Taken taken;
    os::StayInside until_cut;
    BagIndex at_once = PageHeap::none;
    {
        os::Guard guard(shard.lock);
        take_from(shard, want, taken);
        if (or_add && taken.nothing() && adopt(shard, number)) take_from(shard, want, taken);
        if (or_add && taken.nothing()) fresh = at_once = pages_.take_small_at_once(shape().bags, class_);
        if (taken.nothing() && fresh != PageHeap::none) {
            add_bag(shard, number, fresh);
            fresh = PageHeap::none;
            take_from(shard, want, taken);
        }
        if (taken.cut != no_bag) until_cut.begin();
    }
    if (taken.lists > 0) note_spare(number);
    if (NUMALLOC_UNLIKELY(at_once != PageHeap::none))
        pages_.sample_cost_of_small(at_once, shape().bags, Bytes{taken.fresh.count} * shape().size);
    return supply_of(taken, want);
}

// Puts a large object into the common ring. The ring's room shrinks with the class; objects beyond it are sorted.
void ClassHeap::put_in_common(Batch list, Emptied& emptied) {
    const std::uint32_t room = common_room();
    if (room > 0) {
        os::count(os::Count::common_lists);
        list = common().ring.push(list, room);
        common().activity.note_arrival();
    }
    if (list.head != nullptr) sort(list, emptied);
    while (common().ring.size() > room && (list = common().ring.pop_newest()).head != nullptr) sort(list, emptied);
}

void ClassHeap::put_in_ring(Shard& home, Batch list, Emptied& emptied) {
    const Batch displaced = home.ring.push(list, ring_room(list.count));
    home.activity.note_arrival();
    if (displaced.head != nullptr) sort(displaced, emptied);
}

std::uint32_t ClassHeap::put(Batch list, From from) {
    os::count(os::Count::hand_overs);
    Shard& home = shard(shard_of(home_of(list)));
    check_some(home, list);
    if (from == From::remote_cache) home.came_home.fetch_add(list.count, std::memory_order_relaxed);
    Emptied emptied;
    std::uint32_t keep = shape().batch;
    if (sparse(home)) {
        sort(list, emptied);
        const std::uint64_t taken = taken_of(home);
        if (taken <= home.flush_below.load(std::memory_order_relaxed)) {
            while ((list = take_list(home)).head != nullptr) sort(list, emptied);
            home.flush_below.store(policy::shards::flushed_below.part_of(taken_of(home)), std::memory_order_relaxed);
        }
        keep = static_cast<std::uint32_t>(
            max_of<std::uint64_t>(1, min_of<std::uint64_t>(keep, taken / policy::shards::kept_of_sparse)));
    } else {
        home.flush_below.store(taken_of(home), std::memory_order_relaxed);
        if (keep == 1) put_in_common(list, emptied);
        else if (from == From::remote_cache && home.ring.join(list, keep)) home.activity.note_arrival();
        else put_in_ring(home, list, emptied);
    }
    give(emptied);
    return keep;
}

void ClassHeap::give_last(Batch list) {
    Shard& home = shard(shard_of(home_of(list)));
    if (sparse(home) || !home.ring.empty() || shape().batch == 1) return give_to_bags(list);
    os::count(os::Count::hand_overs);
    check_some(home, list);
    const Batch displaced = home.ring.push(list, ring_room(list.count));
    home.activity.note_arrival();
    if (displaced.head != nullptr) give_to_bags(displaced);
}

void ClassHeap::give_to_bags(Batch list) {
    check_list(region(), class_, list);
    Emptied emptied;
    sort(list, emptied);
    give(emptied);
}

ClassUse ClassHeap::use() const {
    ClassUse use;
    use.ring = common().ring.objects();
    for (unsigned i = 0; i < shards_.end(); ++i) {
        if (!shards_.is_open(i)) continue;
        const Shard& s = shard(i);
        use.taken += taken_of(s);
        use.ring += s.ring.objects();
        use.bags += bags_of(s);
        use.fetched += s.fetched.load(std::memory_order_relaxed);
        use.came_home += s.came_home.load(std::memory_order_relaxed);
    }
    return use;
}

void ClassHeap::validate() const {
    if constexpr (checks_enabled) {
        for (unsigned i = 0; i < shards_.end(); ++i) {
            if (!shards_.is_open(i)) continue;
            Shard& shard = this->shard(i);
            os::Guard guard(shard.lock);
            BagIndex previous;
            std::uint32_t away = 0;
            for (BagIndex b = shard.partial; b != no_bag; b = bag(b).small.next) {
                const Bag& listed = bag(b);
                // The list of such a bag changes without the lock.
                const bool being_cut = load_acquire(listed.small.being_cut);
                const FreeList freed = FreeList::of(listed);
                NUMALLOC_ASSERT(listed.state == BagState::small && listed.class_id == class_.value &&
                                freed.shard() == i);
                NUMALLOC_ASSERT(listed.small.listed && listed.small.previous == previous);
                NUMALLOC_ASSERT(being_cut || freed.count() > 0 || has_away(listed));
                NUMALLOC_ASSERT(freed.count() <= here_of(listed) && here_of(listed) <= listed.small.carved);
                NUMALLOC_ASSERT(listed.small.carved <= shape().objects);
                std::uint32_t count = 0;
                for (const Object* o = freed.newest(); !being_cut && o != nullptr; o = o->next) ++count;
                NUMALLOC_ASSERT(being_cut || count == freed.count());
                away += away_of(listed);
                previous = b;
            }
            NUMALLOC_ASSERT(shard.away == away);
            NUMALLOC_ASSERT(shard.last_partial == previous);
        }
    }
}

}  // namespace numalloc

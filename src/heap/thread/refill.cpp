#include "heap/thread/refill.h"

#include "base/tracepoints.h"
#include "heap/thread/fast_paths.h"
#include "heap/thread/held.h"
#include "heap/thread/housekeeping.h"
#include "heap/thread/limit.h"
#include "heap/thread/lists.h"
#include "heap/thread/sampled.h"

namespace numalloc {

namespace policy::lists {

// Up to 4 KiB, a thread's first list of a class has 1/8 of a batch, but at least two objects; each further list
// doubles. So a thread that uses a class once does not touch a whole page for it.
constexpr std::uint32_t first_part = 8;
constexpr std::uint32_t shortest = 2;
// Each object above 4 KiB costs a page at least. So the first refill of a class fetches one object, and when the last
// object of a list is taken nothing is fetched ahead, unless the list ran empty recently: a thread that uses many
// classes now and then never needs more.
constexpr Bytes alone_above = size_for(4 * KiB);

}  // namespace policy::lists

// At least two, if a batch of the class has two: with lists of one object every other call would be slow.
std::uint32_t batch_limit(const ThreadHeap* h, ClassId c) {
    const std::uint32_t batch = process_heap.batch(c);
    return max_of(min_of(batch, policy::lists::shortest), batch >> h->home->slots.crowding());
}

std::uint16_t next_capacity(const ThreadHeap* h, ClassId c) {
    const std::uint32_t most = batch_limit(h, c);
    const std::uint32_t capacity = h->lists[c.value].capacity;
    return static_cast<std::uint16_t>(
        capacity == 0 ? max_of(min_of(most, policy::lists::shortest), most / policy::lists::first_part)
                      : min_of(2 * capacity, most));
}

namespace {

// Whether to fetch `objects` objects, though the program asked for one or none.
bool fetches_ahead(const ThreadHeap* h, const ClassShape& shape, std::uint32_t objects) {
    return shape.batch > 1 &&
           (shape.size <= policy::lists::small || h->held + Bytes{objects} * shape.size <= h->may_hold);
}

// Notes that the class's list runs empty. Returns whether it is one of the last four lists that did, or has objects of
// up to 4 KiB.
bool runs_empty_again(ThreadHeap* h, ClassId c) {
    if (shape_of(c).size <= policy::lists::alone_above) return true;
    bool again = false;
    for (unsigned shift = 0; shift < 32; shift += 8) again = again || (h->emptied >> shift & 0xFF) == c.value;
    h->emptied = h->emptied << 8 | c.value;
    return again;
}

// Hands out a single object that was never used. If it reads as zero, it stays untouched (but not in the hardened
// library): a program may use only the end of a large one, as a stack.
Object* hand_out_fresh(const Supply& supply, ClassId id) {
    auto* const object = static_cast<Object*>(supply.fresh);
    // The memory may hold an old object of another class, whose bytes could look like a mark, and whose link must not
    // tell the program an address.
    if (!supply.zeroed) {
        *object = {};
        if constexpr (hardened) clear_freed(object, shape_of(id).size);
    }
    arm(object, id);
    return object;
}

// Fills the current list, which is empty, with a batch from the node. With `one` the batch has one object more, which
// the caller gets; else all are for the list, and the result only says whether there are any.
Allocation take_batch(ThreadHeap* h, ClassId id, bool one) {
    const unsigned c = id.value;
    ThreadHeap::Lists& s = h->lists[c];
    const ClassShape& shape = shape_of(id);
    const bool alone = s.capacity == 0 && shape.size > policy::lists::alone_above;
    s.capacity = alone ? 1 : next_capacity(h, id);
    std::uint32_t want = s.capacity + std::uint32_t{one};
    // Above 32 KiB always one object at a time (NUMAlloc, 3.4).
    if (alone || !fetches_ahead(h, shape, want)) want = 1;
    const Supply supply = process_heap.take_small(h->home->node, id, want, h->shard);
    if (supply.count == 0) return {};
    trace::refill(h->home->node.value, static_cast<unsigned>(shape.size), supply.count);
    housekeeping(h);
    if (supply.fresh != nullptr && supply.count == 1 && one) return {hand_out_fresh(supply, id), supply.zeroed};
    Object* const first = supply.fresh != nullptr ? link_fresh(supply.fresh, supply.count, shape.size) : supply.list;
    std::uint32_t rest = supply.count;
    Object* list = first;
    if (one) {
        list = first->next;
        hand_out(first, id);
        --rest;
    }
    // An object that another node supplied because this one is full must not enter the list.
    if (rest > 0 && process_heap.owner(first) == h->home) {
        set_current(h, c, list, rest, rest + s.capacity);
        bound_lists(h, id);
    } else if (rest > 0) {
        h->remote_cache.add(process_heap.owner(first)->node, id, first);
    }
    return {first, supply.zeroed};
}

// Inlined into refill(), because it is the common case.
NUMALLOC_INLINE Allocation take_last_or_batch(ThreadHeap* h, ClassId id) {
    const unsigned c = id.value;
    ThreadHeap::Lists& s = h->lists[c];
    if (h->head[c] == &end_of_list) return take_batch(h, id, true);
    // Returns the last object of the current list. Makes the sealed list or a new batch current: with an empty list the
    // next free and the malloc after it would be slow, too.
    Object* const last = h->head[c];
    // pop() returns nullptr for a longer list only if the mark is missing.
    if (NUMALLOC_UNLIKELY(last->next != nullptr)) die_of_damage(last);
    if (s.sealed != nullptr) {
        make_sealed_current(h, c);
    } else {
        set_empty(h, c);
        if (runs_empty_again(h, id) && fetches_ahead(h, shape_of(id), next_capacity(h, id))) take_batch(h, id, false);
        else housekeeping_if_rare(h);
    }
    return {.p = hand_out(last, id), .reused = true};
}

}  // namespace

Allocation refill_unsampled(ThreadHeap* h, ClassId id) { return take_last_or_batch(h, id); }

Allocation refill(ThreadHeap* h, ClassId id, Bytes asked) {
    if (guarded::on()) return refill_guarded(h, id, asked);
    if (NUMALLOC_UNLIKELY(h->profile != nullptr)) return refill_counted(h, id, asked);
    return take_last_or_batch(h, id);
}

Allocation allocate_on(ThreadHeap* h, NodeId n, ClassId c, Bytes asked) {
    if (h == &no_heap || process_heap.mechanisms().keeps_others()) return allocate_without_heap(n, c, asked);
    if (h->home->node == n) {
        void* p = pop(h, c.value);
        return p != nullptr ? Allocation{p} : refill(h, c, asked);
    }
    if (profile::on() && profile::chooses(h->profile, shape_of(c).size))
        if (const Allocation object = profile::allocate(h->profile, n, c, asked); object.p != nullptr) return object;
    if (void* p = h->remote_cache.take(n, c)) return {p};
    housekeeping(h);
    return h->remote_cache.fetch(n, c);
}

Allocation allocate_without_heap(NodeId n, ClassId c, Bytes asked) {
    if (profile::on() && profile::chooses(nullptr, shape_of(c).size))
        if (const Allocation object = profile::allocate(nullptr, n, c, asked); object.p != nullptr) return object;
    const Supply supply = process_heap.take_small(n, c, 1);
    if (supply.count == 0) return {};
    if (supply.fresh != nullptr) return {hand_out_fresh(supply, c), supply.zeroed};
    if (supply.count > 1) {
        NodeHeap* from = process_heap.owner(supply.list);
        from->of(c).give_to_bags({supply.list->next, supply.count - 1});
    }
    return {hand_out(supply.list, c)};
}

void* allocate_big(ThreadHeap* h, NodeId n, Bytes bytes, Bytes alignment) {
    void* const p = process_heap.take_big(n, bytes, alignment);
    if (p == nullptr) return nullptr;
    if (h != &no_heap) {
        const Region& region = process_heap.owner(p)->pages.region();
        region.bag(region.bag_of(p)).big.thread = h->thread;
    }
    if (profile::on()) profile::allocated(h->profile, p, bytes);
    keep_within_limit(h);
    if (h != &no_heap) housekeeping_if_rare(h);
    return p;
}

}  // namespace numalloc

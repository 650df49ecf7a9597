#include "heap/thread/thread_heap.h"

#include "base/check.h"
#include "base/tracepoints.h"
#include "heap/process/bound_heap.h"
#include "heap/space/invalid.h"
#include "heap/thread/lists.h"

namespace numalloc {

constinit Object end_of_list{};

namespace {

// Most objects of a batch: the class's batch, less where many threads share the node. Two at
// least where a batch has two: one at a time is a slow path for every other call.
std::uint32_t batch_limit(const ThreadHeap* h, ClassId c) {
    const std::uint32_t batch = process_heap.batch(c);
    return max_of(min_of(batch, policy::shortest_list), batch >> h->home->slots.crowding());
}

// Lists begin small and double with every refill.
std::uint16_t next_capacity(const ThreadHeap* h, ClassId c) {
    const std::uint32_t most = batch_limit(h, c);
    const std::uint32_t capacity = h->lists[c.value].capacity;
    return static_cast<std::uint16_t>(capacity == 0
                                          ? max_of(min_of(most, policy::shortest_list), most / policy::first_list_part)
                                          : min_of(2 * capacity, most));
}

// why_invalid() of what is known to be small.
const char* why_not_of_class(Location at, const void* p) {
    return ClassHeap::why_invalid(at.owner->pages.region(), at.bag, at.class_id, p);
}

// Before anything is done with it.
NUMALLOC_INLINE void take_back(Location at, Object* p, const char* call) {
    if (const char* why = why_not_of_class(at, p)) die_of_invalid_pointer(call, p, why);
    if (was_freed(p)) die_of_invalid_pointer(call, p, "was freed already");
    if (!is_whole(p, shape_of(at.class_id).size)) die_of_invalid_pointer(call, p, "was written to beyond its end");
    make_freed(p, shape_of(at.class_id).size);
}

// The class's bags are mostly empty, and each object that rests here holds a whole one: the
// sealed list goes, and the next hand-over comes after few frees.
void keep_fewer(ThreadHeap* h, unsigned c, std::uint32_t keep) {
    ThreadHeap::Lists& s = h->lists[c];
    s.capacity = static_cast<std::uint16_t>(max_of<std::uint32_t>(1, keep));
    if (s.sealed != nullptr) give_batch(h, ClassId{c}, {s.sealed, s.sealed_count}, To::bags);
    s.sealed = nullptr;
    const std::uint32_t count = length(h, c);
    set_current(h, c, h->head[c], count, count + s.capacity);
}

// Of the classes with one object a batch, those freed last keep theirs: one of each class would
// be 3.5 MiB a thread.
void keep_large(ThreadHeap* h, unsigned c) {
    auto& kept = h->large_classes;
    if (kept[0] == c) return;
    if (kept[1] != c && kept[1] != 0) give_list(h, kept[1], To::ring);
    kept[1] = kept[0];
    kept[0] = static_cast<std::uint8_t>(c);
}

// The current list is full.
void free_into_full_list(ThreadHeap* h, Location at, Object* p) {
    const unsigned c = at.class_id.value;
    ThreadHeap::Lists& s = h->lists[c];
    h->room[c] = 0;
    if (shape_of(ClassId{c}).batch == 1) keep_large(h, c);
    const std::uint32_t count = length(h, c);
    if (s.capacity == 0) s.capacity = next_capacity(h, ClassId{c});
    if (count < s.capacity) {
        p->next = count == 0 ? nullptr : h->head[c];
        set_current(h, c, p, count + 1, s.capacity);
        return bound_lists(h, ClassId{c});
    }
    // Current is full: its older part is sealed, and what was sealed before goes to the node. Of
    // the largest classes, of which a batch is one object, nothing is sealed.
    Object* donated = s.sealed;
    std::uint32_t donated_count = s.sealed_count;
    Object* old = h->head[c];
    std::uint32_t kept = 0;
    if (count > s.capacity + s.capacity / policy::grown_list_part) {
        // It had grown beyond a batch: the newest stay. The walk is over objects just freed; a thread that
        // goes on freeing has less room next time, and then no such list again.
        kept = min_of<std::uint32_t>(s.capacity, count - s.capacity);
        Object* last = old;
        for (std::uint32_t i = 1; i < kept; ++i) last = last->next;
        p->next = old;
        old = last->next;
        last->next = nullptr;
    } else {
        p->next = nullptr;
    }
    const bool too_much = Bytes{count - kept} * shape_of(ClassId{c}).size > h->may_hold;
    if (shape_of(ClassId{c}).batch > 1 && !too_much) {
        s.sealed = old;
        s.sealed_count = static_cast<std::uint16_t>(count - kept);
    } else {
        if (donated != nullptr) give_batch(h, ClassId{c}, {donated, donated_count}, To::bags);
        s.sealed = nullptr;
        donated = old;
        donated_count = count - kept;
    }
    set_current(h, c, p, kept + 1,
                max_of(kept + 1, s.capacity + (donated == nullptr ? kept : kept / policy::kept_again_part)));
    if (donated == nullptr) return bound_lists(h, ClassId{c});
    // A thread that frees more than it allocates: its batches grow as those of one that allocates.
    s.capacity = next_capacity(h, ClassId{c});
    const std::uint32_t keep = give_batch(h, ClassId{c}, {donated, donated_count}, too_much ? To::bags : To::ring);
    if (keep < s.capacity) keep_fewer(h, c, keep);
    bound_lists(h, ClassId{c});
    housekeeping(h);
}

// A thread's first frees are of objects that its creator gave it, which lie in one cache line with
// what others got (passive false sharing): they go back to the bags of their own shard.
bool send_to_its_shard(const ThreadHeap* h, Location at, Object* p) {
    const Region& region = at.owner->pages.region();
    if (at.owner != h->home || shard_of(region.bag(region.head_of(at.bag))) == h->shard) return false;
    p->next = nullptr;
    at.owner->of(at.class_id).give_to_bags({p, 1});
    return true;
}

// The malloc after those that the current list serves is to be recorded: what is freed meanwhile joins the sealed list.
void free_beside_list(ThreadHeap* h, Location at, Object* p) {
    const unsigned c = at.class_id.value;
    ThreadHeap::Lists& s = h->lists[c];
    if (shape_of(at.class_id).batch == 1) {
        p->next = nullptr;
        give_batch(h, at.class_id, {p, 1}, To::ring);
        return housekeeping(h);
    }
    if (s.sealed != nullptr && s.sealed_count >= batch_limit(h, at.class_id)) {
        give_batch(h, at.class_id, {s.sealed, s.sealed_count}, To::ring);
        s.sealed = nullptr;
        housekeeping(h);
    }
    if (s.sealed == nullptr) s.sealed_count = 0;
    p->next = s.sealed;
    s.sealed = p;
    ++s.sealed_count;
    bound_lists(h, at.class_id);
}

// For a thread that the heap profile watches: the current list holds only as many objects as there are mallocs before
// the next one that is recorded.
NUMALLOC_COLD void free_counted(ThreadHeap* h, Location at, Object* p) {
    const unsigned c = at.class_id.value;
    if (h->profile->left[c] <= 0) return free_beside_list(h, at, p);
    const std::int32_t mallocs = before_record(h, c);
    if (--h->room[c] < 0) free_into_full_list(h, at, p);
    else link(h, c, p);
    set_before_record(h, c, mallocs);
}

// What push() would have done, had fast frees been on, or other nodes' objects been its too.
void free_checked(ThreadHeap* h, Location at, Object* p) {
    const unsigned c = at.class_id.value;
    if (h->checked_frees > 0) {
        if (--h->checked_frees == 0 && !(hardened && h->profile != nullptr))
            (h->profile != nullptr ? h->profile->bound : h->bound) = h->fast_bound;
        if (send_to_its_shard(h, at, p)) return;
    }
    if (h->profile != nullptr) return free_counted(h, at, p);
    if (--h->room[c] < 0) return free_into_full_list(h, at, p);
    link(h, c, p);
}

NUMALLOC_INLINE void free_without_class(Location at, void* p, const char* call) {
    if (at.found == Found::side) return side::free(p, call);
    if (profile::on())
        if (const char* const why = profile::freeing(at, p)) die_of_invalid_pointer(call, p, why);
    if (at.found == Found::big) {
        if (!is_whole(p, bytes_of(at))) die_of_invalid_pointer(call, p, "was written to beyond its end");
        return process_heap.give_big(at);
    }
    if (at.found == Found::guarded) return guarded::free(p, call);
    const char* const why = at.found == Found::bound ? BoundHeap::free(at, p) : why_invalid(at, p);
    if (why != nullptr) die_of_invalid_pointer(call, p, why);
}

}  // namespace

constinit ThreadHeap no_heap;
NUMALLOC_THREAD_LOCAL ThreadHeap* this_thread_heap = &no_heap;
NUMALLOC_THREAD_LOCAL ThreadHeap* this_thread_operators = &no_heap;
NUMALLOC_THREAD_LOCAL ThreadHeap* attached_heap = &no_heap;
constinit bool operators_have_heap = false;

void flush_thread() {
    if (ThreadHeap* const h = attached_heap; h != &no_heap) give_all(h, To::bags);
}

void ask_others_to_flush() {
    const std::uint32_t now = trims.fetch_add(1, std::memory_order_relaxed) + 1;
    if (ThreadHeap* const h = attached_heap; h != &no_heap) h->trims_seen = now;
}

namespace {

// A batch from the node becomes current, which is empty; `one` of its objects is for the
// caller.
Allocation take_batch(ThreadHeap* h, ClassId id, bool one) {
    const unsigned c = id.value;
    ThreadHeap::Lists& s = h->lists[c];
    const ClassShape& shape = shape_of(id);
    s.capacity = next_capacity(h, id);
    // Of the largest classes, only the one (paper 3.4: above 32 KiB one object at a time).
    const std::uint32_t want = shape.batch > 1 ? s.capacity + std::uint32_t{one} : 1;
    const Supply supply = process_heap.take_small(h->home->node, id, want, h->shard);
    if (supply.count == 0) return {};
    trace::refill(h->home->node.value, static_cast<unsigned>(shape.size), supply.count);
    housekeeping(h);
    Object* const first = supply.fresh != nullptr ? link_fresh(supply.fresh, supply.count, shape.size) : supply.list;
    std::uint32_t rest = supply.count;
    Object* list = first;
    if (one) {
        list = first->next;
        hand_out(first, id);
        --rest;
    }
    // A spilled object is another node's: it must not enter the list.
    if (rest > 0 && process_heap.owner(first) == h->home) {
        set_current(h, c, list, rest, rest + s.capacity);
        bound_lists(h, id);
    } else if (rest > 0) {
        h->remote_cache.add(process_heap.owner(first)->node, id, first);
    }
    return {first, supply.zeroed};
}

NUMALLOC_INLINE Allocation refill_any(ThreadHeap* h, ClassId id) {
    const unsigned c = id.value;
    ThreadHeap::Lists& s = h->lists[c];
    if (h->head[c] == &end_of_list) return take_batch(h, id, true);
    // The last object of current; the sealed list takes its place, or a new batch: a list
    // left empty would send the next free, and the malloc after it, the slow way too.
    Object* const last = h->head[c];
    // More than one, and pop() took none: the mark is not there.
    if (NUMALLOC_UNLIKELY(last->next != nullptr)) die_of_damage(last);
    if (s.sealed != nullptr) {
        set_current(h, c, s.sealed, s.sealed_count, s.sealed_count + std::uint32_t{s.capacity});
        s.sealed = nullptr;
    } else {
        set_empty(h, c);
        if (shape_of(id).batch > 1) take_batch(h, id, false);
    }
    return {hand_out(last, id)};
}

// What is longer goes back to sealed, which is empty.
void keep_at_most(ThreadHeap* h, unsigned c, std::uint32_t count) {
    ThreadHeap::Lists& s = h->lists[c];
    const std::uint32_t held = length(h, c);
    if (held <= count) return;
    Object* const list = h->head[c];
    s.sealed = list;
    s.sealed_count = static_cast<std::uint16_t>(held - count);
    if (count == 0) return set_empty(h, c);
    Object* last = list;
    for (std::uint32_t i = 1; i < count; ++i) last = last->next;
    s.sealed = last->next;
    last->next = nullptr;
    set_current(h, c, list, count, count + s.capacity);
}

// Of a thread that the heap profile watches. The malloc that is recorded has its object from elsewhere.
NUMALLOC_COLD Allocation refill_counted(ThreadHeap* h, ClassId id, Bytes asked) {
    const unsigned c = id.value;
    ThreadHeap::Lists& s = h->lists[c];
    std::int32_t mallocs = before_record(h, c);
    if (mallocs <= 0) {
        mallocs = profile::draw(*h->profile, id);
        set_before_record(h, c, mallocs);
        if (const Allocation object = profile::allocate(h->profile, h->home->node, id, asked); object.p != nullptr)
            return object;
        ++mallocs;  // with no memory for it another one takes its place
    }
    if (h->head[c] == &end_of_list && s.sealed != nullptr) {
        set_current(h, c, s.sealed, s.sealed_count, s.sealed_count + std::uint32_t{s.capacity});
        s.sealed = nullptr;
    }
    Allocation object{pop(h, c)};
    if (object.p == nullptr) object = refill_any(h, id);
    if (object.p != nullptr) --mallocs;
    keep_at_most(h, c, static_cast<std::uint32_t>(mallocs));
    set_before_record(h, c, mallocs);
    return object;
}

// Returns a guarded object when its turn has come. Else the new list is no longer than the number of mallocs before
// that.
NUMALLOC_COLD Allocation refill_guarded(ThreadHeap* h, ClassId id, Bytes asked) {
    const unsigned c = id.value;
    ThreadHeap::Lists& s = h->lists[c];
    guarded::Countdown& countdown = h->guarded;
    if (!countdown.begun) guarded::begin(countdown);
    if (countdown.left <= 0) {
        guarded::draw(countdown);
        if (const Allocation object = guarded::allocate(countdown, h->home->node, asked); object.p != nullptr)
            return object;
    }
    if (h->head[c] == &end_of_list && s.sealed != nullptr) {
        set_current(h, c, s.sealed, s.sealed_count, s.sealed_count + std::uint32_t{s.capacity});
        s.sealed = nullptr;
    }
    Allocation object{pop(h, c)};
    if (object.p == nullptr) object = refill_any(h, id);
    if (countdown.left > 0) --countdown.left;
    if (s.sealed == nullptr) keep_at_most(h, c, static_cast<std::uint32_t>(countdown.left));
    countdown.left -= static_cast<std::int32_t>(length(h, c));
    return object;
}

}  // namespace

Allocation refill(ThreadHeap* h, ClassId id, Bytes asked) {
    if (guarded::on()) return refill_guarded(h, id, asked);
    if (NUMALLOC_UNLIKELY(h->profile != nullptr)) return refill_counted(h, id, asked);
    return refill_any(h, id);
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
    if (supply.fresh != nullptr) {
        // What was there before may have been an object of another class.
        static_cast<Object*>(supply.fresh)->mark = 0;
        arm(supply.fresh, c);
        return {supply.fresh, supply.zeroed};
    }
    if (supply.count > 1) {
        NodeHeap* from = process_heap.owner(supply.list);
        from->of(c).give_to_bags({supply.list->next, supply.count - 1});
    }
    return {hand_out(supply.list, c)};
}

// A small object that is free to serve again. Inline, so that what was located stays in registers.
NUMALLOC_INLINE void free_small(ThreadHeap* h, Location at, Object* object, Freed why) {
    // Of class 0, or below our region, a pointer may have passed the comparison: only one inside has a bag there.
    if (why == Freed::full && at.owner == h->home) return free_into_full_list(h, at, object);
    if (h != &no_heap && process_heap.mechanisms().keeps(at.owner, h->home)) return free_checked(h, at, object);
    if (h != &no_heap) {
        h->remote_cache.add(at.owner->node, at.class_id, object);
        housekeeping(h);
    } else {
        object->next = nullptr;
        at.owner->of(at.class_id).give_to_bags({object, 1});
    }
}

void free_from_quarantine(ThreadHeap* h, Object* object) {
    if (!rests_alone(object)) die_of_damage(object);  // the rest of it malloc asks
    free_small(h, locate(object), object, Freed::elsewhere);
}

NUMALLOC_INLINE void free_at(ThreadHeap* h, Location at, void* p, Freed why, const char* call) {
    if (why == Freed::full) h->room[0] = 0;
    if (at.found != Found::small) return free_without_class(at, p, call);
    auto* const object = static_cast<Object*>(p);
    take_back(at, object, call);
    if constexpr (hardened) {
        if (h == &no_heap) return free_small(h, at, object, why);
        if (Object* const out = h->quarantine.exchange(object, shape_of(at.class_id).size))
            free_from_quarantine(h, out);
    } else {
        free_small(h, at, object, why);
    }
}

void free_slow(ThreadHeap* h, void* p, Freed why, const char* call) {
    if (p != nullptr) free_at(h, locate(p), p, why, call);
}

void free_located(ThreadHeap* h, Location at, void* p, Freed why, const char* call) { free_at(h, at, p, why, call); }

}  // namespace numalloc

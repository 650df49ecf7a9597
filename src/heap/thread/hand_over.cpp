#include "heap/thread/hand_over.h"

#include "base/tracepoints.h"
#include "heap/thread/held.h"
#include "heap/thread/housekeeping.h"
#include "heap/thread/lists.h"
#include "heap/thread/refill.h"

namespace numalloc {

namespace policy::lists {

// A full list of more than 3/2 of the class's list length L keeps its newest objects: of 1.6 L it seals the oldest L,
// and .6 L stay. The next list may be longer by as many objects, or by half as many if an older list was flushed.
constexpr std::uint32_t grown_part = 2;
constexpr std::uint32_t kept_again_part = 2;

}  // namespace policy::lists

std::uint32_t hand_over(const ThreadHeap* h, ClassId c, Batch list, To to) {
    list = process_heap.mechanisms().own_of(list, c, h->home);
    ClassHeap node = h->home->of(c);
    if (list.head == nullptr) return process_heap.batch(c);
    trace::hand_over(h->home->node.value, static_cast<unsigned>(shape_of(c).size), list.count);
    if (to == To::ring) return node.put(list);
    if (to == To::ring_if_empty) node.give_last(list);
    else node.give_to_bags(list);
    return process_heap.batch(c);
}

void hand_over_class(ThreadHeap* h, unsigned c, To to) {
    const ClassId id{c};
    ThreadHeap::Lists& s = h->lists[c];
    const std::int32_t mallocs = h->profile != nullptr ? before_record(h, c) : 0;
    // A list longer than two batches came from an ended thread and has grown since. It goes to the bags, because as a
    // batch it would grow with each generation of threads.
    if (h->head[c] != &end_of_list)
        hand_over(h, id, {h->head[c], length(h, c)}, length(h, c) > 2 * process_heap.batch(id) ? To::bags : to);
    set_empty(h, c);
    if (s.sealed != nullptr) hand_over(h, id, {s.sealed, s.sealed_count}, to);
    s.sealed = nullptr;
    count_held(h, c);
    if (h->profile != nullptr) set_before_record(h, c, mallocs);
}

namespace {

void hand_over_quarantine(ThreadHeap* h) {
    h->quarantine.empty([](Object* object) {
        const Location at = locate(object);
        if (!rests_alone(object) || !is_as_it_was(object, at.class_id)) die_of_damage(object);
        object->next = nullptr;
        at.owner->of(at.class_id).give_to_bags({object, 1});
    });
}

}  // namespace

void hand_over_all(ThreadHeap* h, To to) {
    hand_over_quarantine(h);
    for (unsigned c = 1; c < class_count; ++c) hand_over_class(h, c, to);
    h->remote_cache.flush();
}

namespace {

// The class's bags are mostly empty, and each object kept here holds a whole bag. Hands over the sealed list and lowers
// the capacity to `keep`, so that the next hand-over follows after few frees.
void keep_fewer(ThreadHeap* h, unsigned c, std::uint32_t keep) {
    ThreadHeap::Lists& s = h->lists[c];
    s.capacity = static_cast<std::uint16_t>(max_of<std::uint32_t>(1, keep));
    if (s.sealed != nullptr) hand_over(h, ClassId{c}, {s.sealed, s.sealed_count}, To::bags);
    s.sealed = nullptr;
    const std::uint32_t count = length(h, c);
    set_current(h, c, h->head[c], count, count + s.capacity);
}

// Of the classes whose batch is one object, the two freed last keep one: one of each class would be 4 MiB a thread.
void keep_large(ThreadHeap* h, unsigned c) {
    auto& kept = h->large_classes;
    if (kept[0] == c) return;
    if (kept[1] != c && kept[1] != 0) hand_over_class(h, kept[1], To::ring);
    kept[1] = kept[0];
    kept[0] = static_cast<std::uint8_t>(c);
}

// Makes `p` the current list, which is full. Returns the objects that leave it. `kept`: how many stay behind `p`.
Batch start_list(ThreadHeap* h, unsigned c, Object* p, std::uint32_t& kept) {
    const std::uint32_t count = length(h, c);
    const std::uint32_t capacity = h->lists[c].capacity;
    Object* const first = h->head[c];
    p->next = nullptr;
    kept = 0;
    if (count <= capacity + capacity / policy::lists::grown_part) return {first, count};
    // The list had grown beyond a batch: its newest objects stay. The walk visits objects just freed. A thread that
    // goes on freeing gets less room, and so no such list again.
    kept = min_of<std::uint32_t>(capacity, count - capacity);
    Object* last = first;
    for (std::uint32_t i = 1; i < kept; ++i) last = last->next;
    p->next = first;
    Object* const old = last->next;
    last->next = nullptr;
    return {old, count - kept};
}

}  // namespace

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
    // Seals the full list, or the older part of a list that has grown; the list sealed before goes to the node. In the
    // largest classes, whose batch is one object, no list is sealed.
    Batch donated{s.sealed, s.sealed_count};
    std::uint32_t kept = 0;
    const Batch old = start_list(h, c, p, kept);
    const bool too_much = Bytes{old.count} * shape_of(ClassId{c}).size > h->may_hold;
    if (shape_of(ClassId{c}).batch > 1 && !too_much) {
        s.sealed = old.head;
        s.sealed_count = static_cast<std::uint16_t>(old.count);
    } else {
        if (donated.head != nullptr) hand_over(h, ClassId{c}, donated, To::bags);
        s.sealed = nullptr;
        donated = old;
    }
    set_current(
        h, c, p, kept + 1,
        max_of(kept + 1, s.capacity + (donated.head == nullptr ? kept : kept / policy::lists::kept_again_part)));
    if (donated.head == nullptr) return bound_lists(h, ClassId{c});
    // The thread frees more than it allocates. Its batches grow like those of a thread that allocates.
    s.capacity = next_capacity(h, ClassId{c});
    const std::uint32_t keep = hand_over(h, ClassId{c}, donated, too_much ? To::bags : To::ring);
    if (keep < s.capacity) keep_fewer(h, c, keep);
    bound_lists(h, ClassId{c});
    housekeeping(h);
}

// What is in hand between two locks would be lost to a fork's child. A fork waits for one class at a time, of which
// each bag that becomes empty may start a purge.
void flush_thread() {
    ThreadHeap* const h = attached_heap;
    if (h == &no_heap) return;
    for (unsigned c = 1; c < class_count; ++c) {
        const os::Inside inside;
        if (!inside) return;
        hand_over_class(h, c, To::bags);
    }
    const os::Inside inside;
    if (!inside) return;
    hand_over_quarantine(h);
    h->remote_cache.flush();
}

}  // namespace numalloc

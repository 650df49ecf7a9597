#include "heap/thread/held.h"

#include "heap/thread/hand_over.h"
#include "heap/thread/lists.h"
#include "os/affinity.h"

namespace numalloc {

namespace policy::lists {

// A thread over its limit flushes idle lists until it holds half of the limit, and lists in use until it holds 7/8:
// what a list in use loses, the thread fetches again.
constexpr Fraction held_without_idle{1, 2};
constexpr Fraction held_by_busy{7, 8};

}  // namespace policy::lists

namespace {

// Requests grants until they cover what the thread holds, or the node refuses.
void ask_for_more(ThreadHeap* h) {
    while (h->held > h->may_hold && may_hold_by_work(h) > policy::lists::any_may_hold + h->granted) {
        const Bytes granted = h->home->list_budget.grant(h->granted, h->home->slots.taken());
        if (granted == h->granted) return;
        set_granted(h, granted);
    }
}

// A new list has room for a batch besides its objects. This limits objects and room together to a batch, which suffices
// if the thread frees only what it allocated itself. A list of small objects keeps room for one more: without it the
// next free would seal the list, which doubles what the class holds.
void keep_less_room(ThreadHeap* h) {
    for (unsigned c = class_count; (c = h->filled.previous(c)) < class_count;) {
        ThreadHeap::Lists& s = h->lists[c];
        const std::uint32_t objects = length(h, c);
        const std::uint32_t one_more = shape_of(ClassId{c}).size <= policy::lists::small ? 1 : 0;
        const std::uint32_t limit = max_of(objects + one_more, std::uint32_t{s.capacity});
        if (limit >= s.limit) continue;
        s.limit = static_cast<std::uint16_t>(limit);
        h->room[c] = static_cast<std::int32_t>(limit - objects);
        count_held(h, c);
    }
}

void flush_class(ThreadHeap* h, unsigned c) {
    hand_over_class(h, c, To::bags);
    h->home->of(ClassId{c}).give_carved(h->shard);
    h->lists[c].capacity = 0;
    h->filled.remove(c);
}

// Loads what flush_class() reads first: in a thread that has waited, nothing of it is in the caches, and most classes
// have one or two objects. Inlined: gcc drops calls of a function that only prefetches.
NUMALLOC_INLINE void prefetch_lists(const ThreadHeap* h) {
    const Region& region = h->home->pages.region();
    for (unsigned c = class_count; (c = h->filled.previous(c)) < class_count;) {
        const Object* const first = h->head[c];
        if (first == &end_of_list) continue;
        __builtin_prefetch(first, 1);
        __builtin_prefetch(&region.bag(region.bag_of(first)), 1);
    }
}

}  // namespace

void return_grants(ThreadHeap* h) {
    h->home->list_budget.saw(os::cpu_at_once());
    Bytes kept = h->home->list_budget.kept(h->granted, h->home->slots.taken());
    while (kept > 0 && h->held + 2 * policy::lists::grant <= policy::lists::any_may_hold + kept)
        kept -= policy::lists::grant;
    if (kept != h->granted) h->home->list_budget.take_back(h->granted - kept);
    set_granted(h, kept);
}

// Flushes lists unused since the last inspection first, then others, but only until a little room is left: a busy
// thread soon fetches again what it flushes. Both passes begin with the classes for alignments, then the largest: a
// thread that uses every size once reuses their pages for its next class.
void hold_less(ThreadHeap* h, ClassId busy_with) {
    ask_for_more(h);
    if (h->held <= h->may_hold) return;
    keep_less_room(h);
    if (h->held <= h->may_hold) return;
    prefetch_lists(h);
    const Bytes without_idle = policy::lists::held_without_idle.part_of(h->may_hold);
    for (unsigned c = class_count; h->held > without_idle && (c = h->filled.previous(c)) < class_count;) {
        ThreadHeap::Lists& s = h->lists[c];
        if (c != busy_with.value && s.seen == h->head[c]) flush_class(h, c);
        s.seen = h->head[c];
    }
    const Bytes busy = policy::lists::held_by_busy.part_of(h->may_hold);
    for (unsigned c = class_count; h->held > busy && (c = h->filled.previous(c)) < class_count;)
        if (c != busy_with.value) flush_class(h, c);
}

}  // namespace numalloc

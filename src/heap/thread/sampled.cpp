#include "heap/thread/sampled.h"

#include "heap/thread/fast_paths.h"
#include "heap/thread/free.h"
#include "heap/thread/hand_over.h"
#include "heap/thread/held.h"
#include "heap/thread/housekeeping.h"
#include "heap/thread/lists.h"
#include "heap/thread/refill.h"

namespace numalloc {

namespace {

// Shortens the current list to `count` objects. The rest becomes the sealed list, which must be empty.
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

// Returns an object that is not sampled.
Allocation take_unsampled(ThreadHeap* h, ClassId id) {
    const unsigned c = id.value;
    if (h->head[c] == &end_of_list && h->lists[c].sealed != nullptr) make_sealed_current(h, c);
    if (void* const p = pop(h, c)) return {p};
    return refill_unsampled(h, id);
}

// Frees an object while the current list already holds as many as there are mallocs before the next recorded one: the
// object joins the sealed list.
void free_beside_list(ThreadHeap* h, Location at, Object* p) {
    const unsigned c = at.class_id.value;
    ThreadHeap::Lists& s = h->lists[c];
    if (shape_of(at.class_id).batch == 1) {
        p->next = nullptr;
        hand_over(h, at.class_id, {p, 1}, To::ring);
        return housekeeping(h);
    }
    if (s.sealed != nullptr && s.sealed_count >= batch_limit(h, at.class_id)) {
        hand_over(h, at.class_id, {s.sealed, s.sealed_count}, To::ring);
        s.sealed = nullptr;
        housekeeping(h);
    }
    if (s.sealed == nullptr) s.sealed_count = 0;
    p->next = s.sealed;
    s.sealed = p;
    ++s.sealed_count;
    bound_lists(h, at.class_id);
}

}  // namespace

// profile::allocate() takes a recorded object from a heap that the profile owns.
NUMALLOC_COLD Allocation refill_counted(ThreadHeap* h, ClassId id, Bytes asked) {
    const unsigned c = id.value;
    std::int32_t mallocs = before_record(h, c);
    if (mallocs <= 0) {
        mallocs = profile::draw(*h->profile, id);
        set_before_record(h, c, mallocs);
        if (const Allocation object = profile::allocate(h->profile, h->home->node, id, asked); object.p != nullptr)
            return object;
        ++mallocs;  // without memory to record this malloc, the next one is recorded
    }
    const Allocation object = take_unsampled(h, id);
    if (object.p != nullptr) --mallocs;
    keep_at_most(h, c, static_cast<std::uint32_t>(mallocs));
    set_before_record(h, c, mallocs);
    return object;
}

// Frees lengthen the list without being counted, so the next guarded object may come late.
NUMALLOC_COLD Allocation refill_guarded(ThreadHeap* h, ClassId id, Bytes asked) {
    const unsigned c = id.value;
    guarded::Countdown& countdown = h->guarded;
    if (!countdown.begun) guarded::begin(countdown);
    if (countdown.left <= 0) {
        guarded::draw(countdown);
        if (const Allocation object = guarded::allocate(countdown, h->home->node, asked); object.p != nullptr)
            return object;
    }
    const Allocation object = take_unsampled(h, id);
    if (countdown.left > 0) --countdown.left;
    if (h->lists[c].sealed == nullptr) keep_at_most(h, c, static_cast<std::uint32_t>(countdown.left));
    countdown.left -= static_cast<std::int32_t>(length(h, c));
    return object;
}

NUMALLOC_COLD void free_counted(ThreadHeap* h, Location at, Object* p) {
    const unsigned c = at.class_id.value;
    if (h->profile->left[c] <= 0) return free_beside_list(h, at, p);
    const std::int32_t mallocs = before_record(h, c);
    if (--h->room[c] < 0) free_into_full_list(h, at, p);
    else hot::link(h, c, p);
    set_before_record(h, c, mallocs);
}

}  // namespace numalloc

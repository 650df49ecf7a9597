#include "heap/thread/free.h"

#include "heap/program_heaps/any_object.h"
#include "heap/program_heaps/bound_heap.h"
#include "heap/space/invalid.h"
#include "heap/thread/fast_paths.h"
#include "heap/thread/hand_over.h"
#include "heap/thread/housekeeping.h"
#include "heap/thread/sampled.h"

namespace numalloc {

namespace {

// A free that failed in push(), for the reason `why`.
struct FailedFree {
    ThreadHeap* heap;
    Location at;
    Pushed why;
    const char* call;  // the program's
};

// Ends the program, with `room` as it was before push().
[[noreturn]] NUMALLOC_COLD void die_of(const FailedFree& failed, const void* p, const char* what) {
    if (failed.why != Pushed::elsewhere && failed.at.owner == failed.heap->home)
        ++failed.heap->room[failed.at.class_id.value];
    die_of_wrong_call(failed.call, p, what);
}

// Ends the program unless a small object in use begins at `p`; marks the object as free.
NUMALLOC_INLINE void mark_as_free(const FailedFree& failed, Object* p) {
    const Location at = failed.at;
    const Region& region = at.owner->pages.region();
    if (const char* what = ClassHeap::why_invalid(region, at.bag, at.class_id, p)) die_of(failed, p, what);
    if (was_freed(p)) die_of(failed, p, "was freed already");
    const Bytes size = shape_of(at.class_id).size;
    if (!is_whole(p, size)) die_of(failed, p, "was written to beyond its end");
    make_freed(p, size);
}

// The first objects that a thread frees are often its creator's, and share cache lines with objects of other threads
// (passive false sharing). They return to the bags of their own shard instead of the thread's lists.
bool return_to_its_shard(const ThreadHeap* h, Location at, Object* p) {
    const Region& region = at.owner->pages.region();
    if (shape_of(at.class_id).batch == 1) return false;
    if (at.owner != h->home || shard_of(region.bag(region.head_of(at.bag))) == h->shard) return false;
    p->next = nullptr;
    at.owner->of(at.class_id).give_to_bags({p, 1});
    return true;
}

// Frees an object that the thread may keep in its lists. push() did not free it because fast frees are not on yet, or
// because of origin_free=0 (an experiment), with which threads keep other nodes' objects.
void free_into_list(ThreadHeap* h, Location at, Object* p) {
    const unsigned c = at.class_id.value;
    if (h->checked_frees > 0) {
        if (--h->checked_frees == 0 && !(hardened && h->profile != nullptr))
            (h->profile != nullptr ? h->profile->bound : h->bound) = h->fast_bound;
        if (return_to_its_shard(h, at, p)) return;
    }
    if (h->profile != nullptr) return free_counted(h, at, p);
    if (--h->room[c] < 0) return free_into_full_list(h, at, p);
    hot::link(h, c, p);
}

// Decides where a small object goes that is marked as free: into this thread's lists, into its remote cache, or, for a
// thread without a heap, into the object's bag. Inline, so that the location stays in registers.
NUMALLOC_INLINE void free_small(ThreadHeap* h, Location at, Object* object, Pushed why) {
    // push() also returns `full` for class 0 and for a pointer below the thread's region.
    if (why == Pushed::full && at.owner == h->home) return free_into_full_list(h, at, object);
    if (h != &no_heap && process_heap.mechanisms().keeps(at.owner, h->home)) return free_into_list(h, at, object);
    if (h != &no_heap) {
        h->remote_cache.add(at.owner->node, at.class_id, object);
        housekeeping(h);
    } else {
        object->next = nullptr;
        at.owner->of(at.class_id).give_to_bags({object, 1});
    }
}

// Frees an object of the side heap or of a bound heap, a guarded or a big one, or ends the program.
NUMALLOC_INLINE void free_without_class(Location at, void* p, const char* call) {
    if (at.found == Found::side) return side::free(p, call);
    if (profile::on())
        if (const char* const why = profile::freeing(at, p)) die_of_wrong_call(call, p, why);
    if (at.found == Found::big) {
        if (!is_whole(p, bytes_of(at))) die_of_wrong_call(call, p, "was written to beyond its end");
        return process_heap.give_big(at);
    }
    if (at.found == Found::guarded) return guarded::free(p, call);
    const char* const why = at.found == Found::bound ? BoundHeap::free(at, p) : why_invalid(at, p);
    if (why != nullptr) die_of_wrong_call(call, p, why);
}

NUMALLOC_INLINE void free_at(ThreadHeap* h, Location at, void* p, Pushed why, const char* call) {
    if (why == Pushed::full) h->room[0] = 0;  // push() has decremented it
    if (at.found != Found::small) return free_without_class(at, p, call);
    auto* const object = static_cast<Object*>(p);
    mark_as_free({h, at, why, call}, object);
    if constexpr (hardened) {
        if (h == &no_heap) return free_small(h, at, object, why);
        if (Object* const out = h->quarantine.exchange(object, shape_of(at.class_id).size))
            free_from_quarantine(h, out);
    } else {
        free_small(h, at, object, why);
    }
}

}  // namespace

void free_object(ThreadHeap* h, void* p, Pushed why, const char* call) {
    if (p != nullptr) free_at(h, locate(p), p, why, call);
}

void free_located(ThreadHeap* h, Location at, void* p, Pushed why, const char* call) { free_at(h, at, p, why, call); }

void free_from_quarantine(ThreadHeap* h, Object* object) {
    if (!rests_alone(object)) die_of_damage(object);  // malloc checks the rest of the object
    free_small(h, locate(object), object, Pushed::elsewhere);
}

}  // namespace numalloc

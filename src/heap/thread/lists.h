// What the slow paths do with a thread's lists: for the files of this folder.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// What a class with objects claims beside them: they lie among others, and hold more pages than they fill.
inline std::uint32_t claim_of_class(unsigned c) { return min_of<std::uint32_t>(4 * KiB, 2 * shape_of(ClassId{c}).size); }

inline void set_current(ThreadHeap* h, unsigned c, Object* list, std::uint32_t count, std::uint32_t limit) {
    ThreadHeap::Lists& s = h->lists[c];
    h->head[c] = list;
    h->claim += (limit - s.limit) * shape_of(ClassId{c}).size;
    if ((limit == 0) != (s.limit == 0)) h->claim += limit == 0 ? 0U - claim_of_class(c) : claim_of_class(c);
    s.limit = static_cast<std::uint16_t>(limit);
    h->room[c] = static_cast<std::int32_t>(limit - count);
    h->filled.add(c);
}

inline void set_empty(ThreadHeap* h, unsigned c) { set_current(h, c, &end_of_list, 0, 0); }

inline void set_sealed(ThreadHeap* h, unsigned c, Object* list, std::uint32_t count) {
    ThreadHeap::Lists& s = h->lists[c];
    h->claim += (count - s.sealed_count) * shape_of(ClassId{c}).size;
    s.sealed = list;
    s.sealed_count = static_cast<std::uint16_t>(count);
}

inline void set_unsealed(ThreadHeap* h, unsigned c) { set_sealed(h, c, nullptr, 0); }

inline std::uint32_t length(const ThreadHeap* h, unsigned c) {
    return static_cast<std::uint32_t>(h->lists[c].limit - h->room[c]);
}

// Where a list goes: into the ring; into it if it is the only one of its shard, as a thread ends; or past it.
enum class To { ring, empty_ring, bags };

// To the node; what ClassHeap::put() says the thread should keep from now on.
std::uint32_t give_batch(const ThreadHeap* h, ClassId c, Batch list, To to);

// All that the thread holds of a class, and of all classes and other nodes.
void give_list(ThreadHeap* h, unsigned c, To to);
void give_all(ThreadHeap* h, To to);

// What a slow path does beside its own work: idle lists, quiet remote caches, idle memory. `busy_with`: the class that
// it is for.
void housekeeping(ThreadHeap* h, ClassId busy_with);
// What concerns others' heaps begins a period later than now.
void put_off_housekeeping();

}  // namespace numalloc

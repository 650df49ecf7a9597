#include "heap/thread/lists.h"

namespace numalloc {

namespace {

// Sends home what a list holds of other nodes, which it does only where frees are not
// origin-aware. The rest.
Batch without_foreign(const ThreadHeap* h, ClassId c, Batch list) {
    Batch own;
    for (Object* o = list.head; o != nullptr;) {
        Object* const next = o->next;
        if (NodeHeap* const owner = process_heap.owner(o); owner != h->home) {
            o->next = nullptr;
            owner->of(c).give_to_bags({o, 1});
        } else {
            o->next = own.head;
            own.head = o;
            ++own.count;
        }
        o = next;
    }
    return own;
}

}  // namespace

std::uint32_t give_batch(const ThreadHeap* h, ClassId c, Batch list, To to) {
    if (NUMALLOC_UNLIKELY(!process_heap.options().origin_free)) list = without_foreign(h, c, list);
    ClassHeap node = h->home->of(c);
    if (list.head == nullptr) return process_heap.batch(c);
    if (to == To::ring) return node.put(list);
    if (to == To::empty_ring) node.give_last(list);
    else node.give_to_bags(list);
    return process_heap.batch(c);
}

void give_list(ThreadHeap* h, unsigned c, To to) {
    const ClassId id{c};
    ThreadHeap::Lists& s = h->lists[c];
    // A list longer than any batch was taken over from an ended thread and added to. It is not
    // passed on: each generation of threads would make it longer, without end.
    if (h->head[c] != &end_of_list) give_batch(h, id, {h->head[c], length(h, c)}, length(h, c) > 2 * process_heap.batch(id) ? To::bags : to);
    set_empty(h, c);
    if (s.sealed != nullptr) give_batch(h, id, {s.sealed, s.sealed_count}, to);
    s.sealed = nullptr;
}

void give_all(ThreadHeap* h, To to) {
    for (unsigned c = 1; c < class_count; ++c) give_list(h, c, to);
    h->remote_cache.flush();
}

}  // namespace numalloc

#include "heap/thread/lists.h"

namespace numalloc {

namespace {

// Sends home what a list holds of other nodes, which it does only where frees are not
// origin-aware. The rest.
SubList without_foreign(const ThreadHeap* h, ClassId c, SubList list) {
    SubList own;
    for (Object* o = list.head; o != nullptr;) {
        Object* const next = o->next;
        if (NodeHeap* const owner = heap.owner(o); owner != h->home) {
            o->next = nullptr;
            owner->of(c).put_into_bags({o, 1});
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

std::uint32_t give_to_node(const ThreadHeap* h, ClassId c, SubList list, To to) {
    if (NUMALLOC_UNLIKELY(!heap.options().origin_free)) list = without_foreign(h, c, list);
    ClassHeap node = h->home->of(c);
    if (list.head == nullptr) return heap.batch(c);
    if (to == To::ring) return node.put(list);
    if (to == To::empty_ring) node.put_last(list);
    else node.put_into_bags(list);
    return heap.batch(c);
}

void hand_over(ThreadHeap* h, unsigned c, To to) {
    const ClassId id{c};
    ThreadHeap::Segment& s = h->segment[c];
    // A list longer than any segment was taken over from an ended thread and added to. It is not
    // passed on: each generation of threads would make it longer, without end.
    if (h->head[c] != &end_of_list) give_to_node(h, id, {h->head[c], length(h, c)}, length(h, c) > 2 * heap.batch(id) ? To::bags : to);
    set_empty(h, c);
    if (s.sealed != nullptr) give_to_node(h, id, {s.sealed, s.sealed_count}, to);
    s.sealed = nullptr;
}

void hand_over_all(ThreadHeap* h, To to) {
    for (unsigned c = 1; c < class_count; ++c) hand_over(h, c, to);
    h->outbox.flush();
}

}  // namespace numalloc

#include "heap/thread/lists.h"

#include "base/tracepoints.h"

namespace numalloc {

std::uint32_t give_batch(const ThreadHeap* h, ClassId c, Batch list, To to) {
    list = process_heap.mechanisms().own_of(list, c, h->home);
    ClassHeap node = h->home->of(c);
    if (list.head == nullptr) return process_heap.batch(c);
    trace::hand_over(h->home->node.value, static_cast<unsigned>(shape_of(c).size), list.count);
    if (to == To::ring) return node.put(list);
    if (to == To::empty_ring) node.give_last(list);
    else node.give_to_bags(list);
    return process_heap.batch(c);
}

void give_list(ThreadHeap* h, unsigned c, To to) {
    const ClassId id{c};
    ThreadHeap::Lists& s = h->lists[c];
    const std::int32_t mallocs = h->profile != nullptr ? before_record(h, c) : 0;
    // A list longer than any batch was taken over from an ended thread and added to. It is not
    // passed on: each generation of threads would make it longer, without end.
    if (h->head[c] != &end_of_list)
        give_batch(h, id, {h->head[c], length(h, c)}, length(h, c) > 2 * process_heap.batch(id) ? To::bags : to);
    set_empty(h, c);
    if (s.sealed != nullptr) give_batch(h, id, {s.sealed, s.sealed_count}, to);
    s.sealed = nullptr;
    count_held(h, c);
    if (h->profile != nullptr) set_before_record(h, c, mallocs);
}

void give_all(ThreadHeap* h, To to) {
    h->quarantine.empty([](Object* object) {
        const Location at = locate(object);
        if (!rests_alone(object) || !is_as_it_was(object, at.class_id)) die_of_damage(object);
        object->next = nullptr;
        at.owner->of(at.class_id).give_to_bags({object, 1});
    });
    for (unsigned c = 1; c < class_count; ++c) give_list(h, c, to);
    h->remote_cache.flush();
}

}  // namespace numalloc

#include "heap/node/ablation.h"

#include "heap/node/process_heap.h"

namespace numalloc {

void Mechanisms::start(const Ablations& said, unsigned nodes) {
    said_ = said;
    nodes_ = nodes;
    for (unsigned c = 1; c < class_count; ++c) {
        const ClassShape& shape = shape_of(ClassId{c});
        const Bytes most = max_of<Bytes>(2, said.hand_over / shape.size);
        batch_[c] = static_cast<std::uint16_t>(min_of<Bytes>(shape.batch, most));
    }
}

Batch Mechanisms::send_others(Batch list, ClassId c, const NodeHeap* home) {
    Batch own;
    for (Object* o = list.head; o != nullptr;) {
        Object* const next = o->next;
        if (NodeHeap* const owner = process_heap.owner(o); owner != home) {
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

}  // namespace numalloc

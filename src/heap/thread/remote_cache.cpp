#include "heap/thread/remote_cache.h"

#include "base/tracepoints.h"
#include "heap/space/freed.h"
#include "os/clock.h"

namespace numalloc {

void RemoteCache::send(Slot& slot) {
    if (slot.head == nullptr) return;
    bytes_.store(bytes() - slot.bytes(), std::memory_order_relaxed);
    NodeHeap* const home = process_heap.opened(slot.node);
    trace::send_home(slot.node.value, static_cast<unsigned>(shape_of(slot.class_id).size), slot.count);
    home->remote_frees.fetch_add(slot.count, std::memory_order_relaxed);
    home->of(slot.class_id).put({slot.head, slot.count});
    slot.head = nullptr;
    slot.count = 0;
}

void RemoteCache::send_all() {
    for (auto& set : slot_)
        for (Slot& slot : set) send(slot);
}

RemoteCache::Slot* RemoteCache::find(NodeId n, ClassId c) {
    for (Slot& slot : slot_[set_of(n, c)])
        if (slot.head != nullptr && slot.node == n && slot.class_id == c) return &slot;
    return nullptr;
}

RemoteCache::Slot& RemoteCache::slot_of(NodeId n, ClassId c) {
    if (Slot* const found = find(n, c)) return *found;
    Slot* chosen = &slot_[set_of(n, c)][0];
    for (Slot& slot : slot_[set_of(n, c)]) {
        if (chosen->head == nullptr) break;
        if (slot.head == nullptr || slot.bytes() > chosen->bytes()) chosen = &slot;
    }
    send(*chosen);
    chosen->node = n;
    chosen->class_id = c;
    return *chosen;
}

// Puts a list of `count` objects in front.
void RemoteCache::keep(Slot& slot, Object* list, std::uint32_t count) {
    if (bytes() == 0) since_ = os::milliseconds();
    Object* last = list;
    while (last->next != nullptr) last = last->next;
    last->next = slot.head;
    slot.head = list;
    slot.count += count;
    bytes_.store(bytes() + Bytes{count} * shape_of(slot.class_id).size, std::memory_order_relaxed);
}

void RemoteCache::add(NodeId n, ClassId c, Object* p) {
    os::Guard guard(lock_);
    Slot& slot = slot_of(n, c);
    p->next = nullptr;
    keep(slot, p, 1);
    if (slot.count >= process_heap.mechanisms().remote_batch(c)) send(slot);
    if (bytes() > policy::remote_budget) send_all();
}

void* RemoteCache::take(NodeId n, ClassId c) {
    os::Guard guard(lock_);
    Slot* const slot = find(n, c);
    if (slot == nullptr) return nullptr;
    Object* const object = slot->head;
    slot->head = object->next;
    --slot->count;
    bytes_.store(bytes() - shape_of(c).size, std::memory_order_relaxed);
    return hand_out(object);
}

Allocation RemoteCache::fetch(NodeId n, ClassId c) {
    // Without the lock: a node that is opened now takes an outer one.
    const ClassShape& shape = shape_of(c);
    const Bytes want = min_of<Bytes>(process_heap.batch(c), max_of<Bytes>(1, policy::remote_fetched / shape.size));
    const Supply supply = process_heap.take_small(n, c, static_cast<std::uint32_t>(want));
    if (supply.count == 0) return {};
    Object* const first = supply.fresh != nullptr ? link_fresh(supply.fresh, supply.count, shape.size) : supply.list;
    if (supply.count > 1) {
        os::Guard guard(lock_);
        if (bytes() + (Bytes{supply.count} - 1) * shape.size > policy::remote_budget) send_all();
        keep(slot_of(n, c), first->next, supply.count - 1);
    }
    return {hand_out(first), supply.zeroed};
}

void RemoteCache::flush() {
    os::Guard guard(lock_);
    send_all();
}

void RemoteCache::flush_if_older(std::uint32_t now, std::uint32_t age) {
    if (empty()) return;
    os::Guard guard(lock_);
    if (bytes() > 0 && now - since_ >= age) send_all();
}

}  // namespace numalloc

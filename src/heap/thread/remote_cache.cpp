#include "heap/thread/remote_cache.h"

#include "os/clock.h"

namespace numalloc {

void Outbox::send(Parcel& parcel) {
    if (parcel.head == nullptr) return;
    __atomic_store_n(&bytes_, bytes_ - Bytes{parcel.count} * shape_of(parcel.class_id).size, __ATOMIC_RELAXED);
    NodeHeap* const home = heap.opened(parcel.node);
    home->of(parcel.class_id).put({parcel.head, parcel.count});
    parcel.head = nullptr;
    parcel.count = 0;
}

void Outbox::send_all() {
    for (Parcel& parcel : parcel_) send(parcel);
}

Outbox::Parcel& Outbox::parcel_of(NodeId n, ClassId c) {
    Parcel& parcel = parcel_[(n.value * 31U + c.value) % parcels];
    if (parcel.head != nullptr && !(parcel.node == n && parcel.class_id == c)) send(parcel);
    parcel.node = n;
    parcel.class_id = c;
    return parcel;
}

// Puts a list of `count` objects in front.
void Outbox::keep(Parcel& parcel, Object* list, std::uint32_t count) {
    if (bytes_ == 0) since_ = os::milliseconds();
    Object* last = list;
    while (last->next != nullptr) last = last->next;
    last->next = parcel.head;
    parcel.head = list;
    parcel.count += count;
    __atomic_store_n(&bytes_, bytes_ + Bytes{count} * shape_of(parcel.class_id).size, __ATOMIC_RELAXED);
}

void Outbox::add(NodeId n, ClassId c, Object* p) {
    os::Guard guard(lock_);
    Parcel& parcel = parcel_of(n, c);
    p->next = nullptr;
    keep(parcel, p, 1);
    if (parcel.count >= heap.batch(c) || !heap.options().remote_batching) send(parcel);
    if (bytes_ > budget) send_all();
}

void* Outbox::take(NodeId n, ClassId c) {
    os::Guard guard(lock_);
    Parcel& parcel = parcel_of(n, c);
    Object* const object = parcel.head;
    if (object == nullptr) return nullptr;
    parcel.head = object->next;
    --parcel.count;
    __atomic_store_n(&bytes_, bytes_ - shape_of(c).size, __ATOMIC_RELAXED);
    return object;
}

void* Outbox::fetch(NodeId n, ClassId c, bool* zeroed) {
    // Without the lock: a node that is opened now takes an outer one.
    const ClassShape& shape = shape_of(c);
    const std::uint32_t want = static_cast<std::uint32_t>(min_of<Bytes>(heap.batch(c), max_of<Bytes>(1, fetched / shape.size)));
    const Supply supply = heap.take_small(n, c, want);
    if (supply.count == 0) return nullptr;
    Object* first = supply.list;
    if (supply.fresh != nullptr) {
        first = link_fresh(supply.fresh, supply.count, shape.size);
        if (zeroed != nullptr) *zeroed = supply.zeroed;
    }
    if (supply.count > 1) {
        os::Guard guard(lock_);
        if (bytes_ + (Bytes{supply.count} - 1) * shape.size > budget) send_all();
        keep(parcel_of(n, c), first->next, supply.count - 1);
    }
    return first;
}

void Outbox::flush() {
    os::Guard guard(lock_);
    send_all();
}

void Outbox::flush_if_older(std::uint32_t now, std::uint32_t age) {
    if (empty()) return;
    os::Guard guard(lock_);
    if (bytes_ > 0 && now - since_ >= age) send_all();
}

}  // namespace numalloc

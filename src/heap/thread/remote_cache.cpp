#include "heap/thread/remote_cache.h"

#include <algorithm>

#include "base/tracepoints.h"
#include "heap/space/mark.h"
#include "os/clock.h"

namespace numalloc {

namespace policy::remote {

// Bytes of a class that a thread fetches from another node at a time: few transfers, and a small part of the budget.
constexpr Bytes fetched = 2 * size_for(2 * KiB);

}  // namespace policy::remote

namespace {

void send_home(NodeId n, ClassId c, Batch objects) {
    trace::send_home(n.value, static_cast<unsigned>(shape_of(c).size), objects.count);
    process_heap.opened(n)->of(c).put(objects, ClassHeap::From::remote_cache);
}

}  // namespace

RemoteCache::List* RemoteCache::new_table() const {
    if (table() != nullptr) return nullptr;
    auto* const fresh = static_cast<List*>(process_heap.take_alone(home_, table_class));
    if (fresh != nullptr) std::fill_n(fresh, places, List{});
    return fresh;
}

bool RemoteCache::use_table(List* fresh) {
    if (fresh != nullptr) {
        table_.store(fresh, std::memory_order_relaxed);
        since_ = os::milliseconds();
    }
    return table() != nullptr;
}

void RemoteCache::send(List& list) {
    bytes_.store(bytes() - list.bytes(), std::memory_order_relaxed);
    send_home(list.node, list.class_id, {list.head, list.count});
    list.head = nullptr;
    list.count = 0;
    filled_.remove(static_cast<unsigned>(&list - table()));
}

void RemoteCache::send_in_turn(Bytes most) {
    while (bytes() > most) {
        unsigned i = filled_.next(turn_);
        if (i == places) {
            i = filled_.first();
            since_ = os::milliseconds();
        }
        turn_ = static_cast<std::uint16_t>(i + 1);
        send(table()[i]);
    }
}

void RemoteCache::send_all() {
    send_in_turn(0);
    std::fill_n(table(), places, List{});
    placed_ = 0;
}

void RemoteCache::send_all_and_table() {
    if (table() == nullptr) return;
    send_in_turn(0);
    placed_ = 0;
    process_heap.give_alone(table(), table_class);
    table_.store(nullptr, std::memory_order_relaxed);
}

RemoteCache::List& RemoteCache::place_of(NodeId n, ClassId c) {
    // Multiplication by the golden ratio spreads neighbouring classes and nodes.
    unsigned i = (n.value * class_count + c.value) * 0x9E37'79B1U >> (32 - log2_floor(places));
    for (List* const lists = table();; i = (i + 1) % places)
        if (lists[i].class_id == no_class || (lists[i].class_id == c && lists[i].node == n)) return lists[i];
}

RemoteCache::List& RemoteCache::list_of(NodeId n, ClassId c) {
    List* list = &place_of(n, c);
    if (list->class_id != no_class) return *list;
    if (placed_ == most_placed) {
        send_all();
        list = &place_of(n, c);
    }
    ++placed_;
    list->node = n;
    list->class_id = c;
    return *list;
}

// Prepends `count` linked objects.
void RemoteCache::keep(List& list, Object* objects, std::uint32_t count) {
    if (bytes() == 0) since_ = os::milliseconds();
    if (list.head == nullptr) filled_.add(static_cast<unsigned>(&list - table()));
    Object* last = objects;
    while (last->next != nullptr) last = last->next;
    last->next = list.head;
    list.head = objects;
    list.count += count;
    bytes_.store(bytes() + Bytes{count} * shape_of(list.class_id).size, std::memory_order_relaxed);
}

void RemoteCache::add(NodeId n, ClassId c, Object* p) {
    p->next = nullptr;
    List* const fresh = new_table();
    os::Guard guard(lock_);
    if (!use_table(fresh)) return send_home(n, c, {p, 1});
    List& list = list_of(n, c);
    keep(list, p, 1);
    if (list.count >= process_heap.mechanisms().remote_batch(c)) send(list);
    send_in_turn(policy::remote::budget);
}

void* RemoteCache::take(NodeId n, ClassId c) {
    if (empty()) return nullptr;
    os::Guard guard(lock_);
    if (table() == nullptr) return nullptr;
    List& list = place_of(n, c);
    Object* const object = list.head;
    if (object == nullptr) return nullptr;
    list.head = object->next;
    if (--list.count == 0) filled_.remove(static_cast<unsigned>(&list - table()));
    bytes_.store(bytes() - shape_of(c).size, std::memory_order_relaxed);
    return hand_out(object, c);
}

Allocation RemoteCache::fetch(NodeId n, ClassId c) {
    // Before the lock is taken: if this opens the node, it takes a lock of lower rank.
    const ClassShape& shape = shape_of(c);
    const Bytes want = min_of<Bytes>(process_heap.batch(c), max_of<Bytes>(1, policy::remote::fetched / shape.size));
    const Supply supply = process_heap.take_small(n, c, static_cast<std::uint32_t>(want));
    if (supply.count == 0) return {};
    Object* const first = supply.fresh != nullptr ? link_fresh(supply.fresh, supply.count, shape.size) : supply.list;
    if (supply.count > 1) {
        const Batch others{first->next, supply.count - 1};
        const Bytes more = Bytes{others.count} * shape.size;
        List* const fresh = new_table();
        os::Guard guard(lock_);
        if (use_table(fresh)) {
            send_in_turn(more < policy::remote::budget ? policy::remote::budget - more : 0);
            keep(list_of(n, c), others.head, others.count);
        } else {
            send_home(n, c, others);
        }
    }
    return {hand_out(first, c), supply.zeroed};
}

void RemoteCache::flush() {
    os::Guard guard(lock_);
    send_all_and_table();
}

void RemoteCache::flush_if_older(std::uint32_t age) {
    if (table() == nullptr) return;
    os::Guard guard(lock_);
    if (os::milliseconds() - since_ >= age) send_all_and_table();
}

}  // namespace numalloc

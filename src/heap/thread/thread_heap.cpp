#include "heap/thread/thread_heap.h"

#include <new>

#include "base/check.h"
#include "heap/node/bound_heap.h"
#include "heap/node/invalid.h"
#include "heap/thread/rehome.h"
#include "os/clock.h"

namespace numalloc {

constinit Object end_of_list{nullptr};

namespace {

// Of the first thread's heap; of later ones as many parts less, so that all threads together pay for some
// thousands.
constexpr std::uint32_t frees_to_check = 1000;
// Of a heap that served another thread before; its lists are still short when it is asked whether they
// hold the object.
constexpr std::uint32_t frees_to_check_again = 16;

// Once in so many slow paths housekeeping looks at a class and at the clock: a round over the
// classes is some 250 slow paths.
constexpr std::uint32_t slow_paths_per_look = 2;
constexpr std::uint32_t housekeeping_period = 100;  // milliseconds

// Most objects of a segment: the class's batch, less where many threads share the node. Two at
// least where a batch has two: one at a time is a slow path for every other call.
std::uint32_t most_of_segment(const ThreadHeap* h, ClassId c) {
    const std::uint32_t batch = heap.batch(c);
    return max_of(min_of<std::uint32_t>(batch, 2), batch >> h->home->slots.crowding());
}

// Segments begin small and double with every refill: a thread that uses a class once does not take
// a page for it.
std::uint16_t next_capacity(const ThreadHeap* h, ClassId c) {
    const std::uint32_t most = most_of_segment(h, c);
    const std::uint32_t capacity = h->segment[c.value].capacity;
    return static_cast<std::uint16_t>(capacity == 0 ? max_of(min_of<std::uint32_t>(most, 2), most / 8) : min_of(2 * capacity, most));
}

std::atomic<std::uint32_t> last_housekeeping{0};

void set_current(ThreadHeap* h, unsigned c, Object* list, std::uint32_t count, std::uint32_t limit) {
    h->head[c] = list;
    h->segment[c].limit = static_cast<std::uint16_t>(limit);
    h->room[c] = static_cast<std::int32_t>(limit - count);
}

void set_empty(ThreadHeap* h, unsigned c) { set_current(h, c, &end_of_list, 0, 0); }

std::uint32_t length(const ThreadHeap* h, unsigned c) {
    return static_cast<std::uint32_t>(h->segment[c].limit - h->room[c]);
}

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

// Where a list goes: into the ring; into it if it is the only one of its share, as a thread ends; or past it.
enum class To { ring, empty_ring, bags };

// To the node; what ClassHeap::put() says the thread should keep from now on.
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

// A program that has moved on to other sizes leaves lists behind, and each object in them holds
// its whole bag. One class at a time, in turn: a list whose head is where it was a round ago is
// idle (or, harmlessly, was used in pairs) and goes back to its bags.
void let_go_of_idle_class(ThreadHeap* h) {
    const unsigned c = h->next_to_look_at;
    h->next_to_look_at = c + 1 < class_count ? c + 1 : 1;
    if (h->head[c] == &end_of_list) return;
    ThreadHeap::Segment& s = h->segment[c];
    if (s.seen == h->head[c]) {
        hand_over(h, c, To::bags);
        s.capacity = 0;
    }
    s.seen = h->head[c];
}

void housekeeping(ThreadHeap* h) {
    if (++h->slow_paths % slow_paths_per_look != 0) return;
    let_go_of_idle_class(h);
    const std::uint32_t now = os::milliseconds();
    std::uint32_t last = last_housekeeping.load(std::memory_order_relaxed);
    if (now - last < housekeeping_period) return;
    if (!last_housekeeping.compare_exchange_strong(last, now, std::memory_order_relaxed)) return;
    // A program that only trickles has few slow paths: several classes at once.
    for (unsigned i = 0; i < class_count / 8; ++i) let_go_of_idle_class(h);
    flush_quiet_outboxes(housekeeping_period);
    heap.scavenge(false);
}

bool holds(const Object* list, const void* p) {
    for (const Object* o = list; o != nullptr; o = o->next)
        if (o == p) return true;
    return false;
}

void check_object(const ThreadHeap* h, const NodeHeap* owner, unsigned c, const void* p, const char* call) {
    if (const char* why = ClassHeap::why_invalid(owner->big.region(), ClassId{c}, p)) die_of_invalid_pointer(call, p, why);
    if (p == h->head[c]) die_of_invalid_pointer(call, p, "was freed already");
}

// The class's bags are mostly empty, and each object that rests here holds a whole one: the
// sealed list goes, and the next hand-over comes after few frees.
void keep_fewer(ThreadHeap* h, unsigned c, std::uint32_t keep) {
    ThreadHeap::Segment& s = h->segment[c];
    s.capacity = static_cast<std::uint16_t>(max_of<std::uint32_t>(1, keep));
    if (s.sealed != nullptr) give_to_node(h, ClassId{c}, {s.sealed, s.sealed_count}, To::bags);
    s.sealed = nullptr;
    const std::uint32_t count = length(h, c);
    set_current(h, c, h->head[c], count, count + s.capacity);
}

// Of the classes with one object a segment, those freed last keep theirs: one of each class would
// be 3.5 MiB a thread.
void keep_large(ThreadHeap* h, unsigned c) {
    auto& kept = h->large_classes;
    if (kept[0] == c) return;
    if (kept[1] != c && kept[1] != 0) hand_over(h, kept[1], To::bags);
    kept[1] = kept[0];
    kept[0] = static_cast<std::uint8_t>(c);
}

// The current list is full.
void free_into_full_list(ThreadHeap* h, const NodeHeap* owner, unsigned c, Object* p, const char* call) {
    ThreadHeap::Segment& s = h->segment[c];
    h->room[c] = 0;
    check_object(h, owner, c, p, call);
    if (shape_of(ClassId{c}).batch == 1) keep_large(h, c);
    const std::uint32_t count = length(h, c);
    if (s.capacity == 0) s.capacity = next_capacity(h, ClassId{c});
    if (count < s.capacity) {
        p->next = count == 0 ? nullptr : h->head[c];
        set_current(h, c, p, count + 1, s.capacity);
        return;
    }
    // Current is full: its older part is sealed, and what was sealed before goes to the node. Of
    // the largest classes, of which a segment is one object, nothing is sealed.
    Object* donated = s.sealed;
    std::uint32_t donated_count = s.sealed_count;
    Object* old = h->head[c];
    std::uint32_t kept = 0;
    if (count > s.capacity + s.capacity / 2U) {
        // It had grown beyond a segment: the newest stay. The walk is over objects just freed; a thread that
        // goes on freeing has less room next time, and then no such list again.
        kept = min_of<std::uint32_t>(s.capacity, count - s.capacity);
        Object* last = old;
        for (std::uint32_t i = 1; i < kept; ++i) last = last->next;
        p->next = old;
        old = last->next;
        last->next = nullptr;
    } else {
        p->next = nullptr;
    }
    if (shape_of(ClassId{c}).batch > 1) {
        s.sealed = old;
        s.sealed_count = static_cast<std::uint16_t>(count - kept);
    } else {
        donated = old;
        donated_count = count - kept;
    }
    set_current(h, c, p, kept + 1, max_of(kept + 1, s.capacity + (donated == nullptr ? kept : kept / 2)));
    if (donated == nullptr) return;
    // A thread that frees more than it allocates: its segments grow as those of one that allocates.
    s.capacity = next_capacity(h, ClassId{c});
    const std::uint32_t keep = give_to_node(h, ClassId{c}, {donated, donated_count}, To::ring);
    if (keep < s.capacity) keep_fewer(h, c, keep);
    housekeeping(h);
}

// A thread's first frees are of objects that its creator gave it, which lie in one cache line with
// what others got (passive false sharing): they go back to the bags of their own share.
bool send_to_its_share(const ThreadHeap* h, NodeHeap* owner, unsigned c, Object* p) {
    Region& region = owner->big.region();
    const Bag& bag = region.bag(region.head_of(region.bag_of(p)));
    if (owner != h->home || __atomic_load_n(&bag.small.share, __ATOMIC_RELAXED) == h->share) return false;
    p->next = nullptr;
    owner->of(ClassId{c}).put_into_bags({p, 1});
    return true;
}

// What push() would have done, had fast frees been on, or other nodes' objects been its too.
void free_checked(ThreadHeap* h, NodeHeap* owner, unsigned c, Object* p, const char* call) {
    if (h->checked_frees > 0) {
        check_object(h, owner, c, p, call);
        if (holds(h->head[c], p) || holds(h->segment[c].sealed, p)) die_of_invalid_pointer(call, p, "was freed already");
        if (--h->checked_frees == 0) h->bound = h->fast_bound;
        if (send_to_its_share(h, owner, c, p)) return;
    }
    if (--h->room[c] < 0) return free_into_full_list(h, owner, c, p, call);
    p->next = h->head[c];
    h->head[c] = p;
}

void free_big(NodeHeap* owner, void* p, const char* call) {
    Region& region = owner->big.region();
    const BagIndex b = region.bag_of(p);
    if (const BoundObject o = BoundHeap::find(owner, p); o.heap != nullptr) {
        if (const char* why = BoundHeap::free(o, p)) die_of_invalid_pointer(call, p, why);
        return;
    }
    if (address_of(p) % bag_bytes != 0 || owner->big.big_run(b) == 0)
        die_of_invalid_pointer(call, p, "is not an allocated object, or was freed already");
    heap.give_big(owner, b);
}

}  // namespace

constinit ThreadHeap no_heap;
constinit __thread ThreadHeap* this_thread_heap = &no_heap;

namespace {

// A slot whose thread is the parent's, or the parent's parent's.
bool left_behind(const void* slot) {
    const auto* h = static_cast<const ThreadHeap*>(slot);
    return h->in_use && h->generation != os::fork_gate.generation();
}

// Its lists may have been in the middle of a change; its outbox was not, that takes a lock.
void take_over(ThreadHeap* h) {
    for (unsigned c = 1; c < class_count; ++c) {
        h->segment[c].sealed = nullptr;
        set_empty(h, c);
    }
    h->outbox.flush();
    h->lock_mark.inside.store(0, std::memory_order_relaxed);
    h->generation = os::fork_gate.generation();
}

// Empty, or left behind.
ThreadHeap* take_heap(NodeHeap* home) {
    os::Guard guard(heap.lock());
    void* slot = home->slots.take(home->big.region(), left_behind);
    if (slot == nullptr) return nullptr;
    auto* h = static_cast<ThreadHeap*>(slot);
    if (left_behind(h)) return h;
    // A reused heap is empty and keeps what it learned: capacities, most of the trust. Its outbox's
    // lock may even be held, by a thread that still believes it in use.
    if (h->home == nullptr) {
        new (slot) ThreadHeap{};
        h->home = home;
        h->fast_bound = home->big.region().bound_for(address_of(h));
        const std::uint32_t number = home->slots.number_of(home->big.region(), slot);
        h->checked_frees = frees_to_check / (number + 1);
        h->share = static_cast<std::uint8_t>(number % class_shares);
        home->shares().open(h->share);
        for (unsigned i = 0; i < medium_entries; ++i)
            h->medium_class[i] = i == 0 ? 1 : class_of(Bytes{i} << medium_step_shift).value;
    }
    h->generation = os::fork_gate.generation();
    __atomic_store_n(&h->in_use, true, __ATOMIC_RELEASE);
    home->slots.show(home->big.region(), h);
    return h;
}

}  // namespace

bool attach_thread(NodeId n) {
    NodeHeap* home = heap.node(n);
    ThreadHeap* const h = home == nullptr ? nullptr : take_heap(home);
    if (h == nullptr) return false;
    if (left_behind(h)) take_over(h);
    h->checked_frees = max_of(h->checked_frees, frees_to_check_again);
    h->bias = home->big.region().bias_for(address_of(h));  // the pool's list went through this word
    h->bound = 0;
    this_thread_heap = h;
    os::use_lock_mark(&h->lock_mark);
    return true;
}

void detach_thread() {
    ThreadHeap* h = this_thread_heap;
    if (h == &no_heap) return;
    hand_over_all(h, To::empty_ring);
    this_thread_heap = &no_heap;
    os::use_lock_mark(nullptr);
    os::Guard guard(heap.lock());
    __atomic_store_n(&h->in_use, false, __ATOMIC_RELEASE);
    h->home->slots.give(h);
}

void flush_thread() {
    if (this_thread_heap != &no_heap) hand_over_all(this_thread_heap, To::bags);
}

void rehome_current_thread(NodeId node) {
    ThreadHeap* h = this_thread_heap;
    if (h == &no_heap || h->home->node == node) return;
    detach_thread();
    // Without memory on the new node the next malloc tries again.
    (void)attach_thread(node);
}

namespace {

// A segment from the node becomes current, which is empty; `one` of its objects is for the
// caller. Fresh objects that read as zero set *zeroed.
Object* take_segment(ThreadHeap* h, ClassId id, bool one, bool* zeroed) {
    const unsigned c = id.value;
    ThreadHeap::Segment& s = h->segment[c];
    const ClassShape& shape = shape_of(id);
    s.capacity = next_capacity(h, id);
    // Of the largest classes, only the one (paper 3.4: above 32 KiB one object at a time).
    const std::uint32_t want = shape.batch > 1 ? s.capacity + std::uint32_t{one} : 1;
    const Supply supply = heap.take_small(h->home->node, id, want, h->share);
    if (supply.count == 0) return nullptr;
    housekeeping(h);
    Object* first = supply.list;
    std::uint32_t rest = supply.count;
    if (supply.fresh != nullptr) {
        if (zeroed != nullptr) *zeroed = supply.zeroed;
        first = link_fresh(supply.fresh, supply.count, shape.size);
    }
    Object* list = first;
    if (one) {
        list = first->next;
        --rest;
    }
    // A spilled object is another node's: it must not enter the list.
    if (rest > 0 && heap.owner(first) == h->home) set_current(h, c, list, rest, rest + s.capacity);
    else if (rest > 0) h->outbox.add(heap.owner(first)->node, id, first);
    return first;
}

}  // namespace

void* refill(ThreadHeap* h, ClassId id, bool* zeroed) {
    const unsigned c = id.value;
    ThreadHeap::Segment& s = h->segment[c];
    if (h->head[c] == &end_of_list) return take_segment(h, id, true, zeroed);
    // The last object of current; the sealed list takes its place, or a new segment: a list
    // left empty would send the next free, and the malloc after it, the slow way too.
    Object* const last = h->head[c];
    if (s.sealed != nullptr) {
        set_current(h, c, s.sealed, s.sealed_count, s.sealed_count + std::uint32_t{s.capacity});
        s.sealed = nullptr;
    } else {
        set_empty(h, c);
        if (shape_of(id).batch > 1) take_segment(h, id, false, nullptr);
    }
    return last;
}

void* allocate_on(ThreadHeap* h, NodeId n, ClassId c, bool* zeroed) {
    // With origin_free=off the thread's own lists hold other nodes' objects as well.
    if (h == &no_heap || !heap.options().origin_free) return allocate_without_heap(n, c, zeroed);
    if (h->home->node == n) {
        void* p = pop(h, c.value);
        return p != nullptr ? p : refill(h, c, zeroed);
    }
    if (void* p = h->outbox.take(n, c)) return p;
    housekeeping(h);
    return h->outbox.fetch(n, c, zeroed);
}

void* allocate_without_heap(NodeId n, ClassId c, bool* zeroed) {
    const Supply supply = heap.take_small(n, c, 1);
    if (supply.count == 0) return nullptr;
    if (supply.fresh != nullptr) {
        if (zeroed != nullptr) *zeroed = supply.zeroed;
        return supply.fresh;
    }
    if (supply.count > 1) {
        NodeHeap* from = heap.owner(supply.list);
        from->of(c).put_into_bags({supply.list->next, supply.count - 1});
    }
    return supply.list;
}

void free_slow(ThreadHeap* h, void* p, Freed why, const char* call) {
    if (p == nullptr) return;
    NodeHeap* const owner = heap.contains(p) ? heap.owner(p) : nullptr;
    if (why == Freed::full) {
        // The byte may have been a guard's, for a pointer beside our region: only one inside has
        // a bag there.
        if (owner == h->home) {
            const ClassId c = owner->big.region().class_at(owner->big.region().bag_of(p));
            if (c != no_class) return free_into_full_list(h, owner, c.value, static_cast<Object*>(p), call);
        }
        h->room[0] = 0;
        if (owner == h->home) return free_big(owner, p, call);
    }
    if (owner == nullptr) die_of_invalid_pointer(call, p, "was not allocated by numalloc");
    const Region& region = owner->big.region();
    const BagIndex b = region.bag_of(p);
    if (b.value < region.first_bag().value || b.value >= region.committed()) die_of_invalid_pointer(call, p, "was never allocated");
    const ClassId c = region.class_at(b);
    if (c == no_class) return free_big(owner, p, call);
    const bool kept = owner == h->home || (!heap.options().origin_free && owner->node.value < heap.nodes());
    if (h != &no_heap && kept) return free_checked(h, owner, c.value, static_cast<Object*>(p), call);
    if (const char* reason = ClassHeap::why_invalid(region, c, p)) die_of_invalid_pointer(call, p, reason);
    auto* object = static_cast<Object*>(p);
    if (h != &no_heap) {
        h->outbox.add(owner->node, c, object);
        housekeeping(h);
    } else {
        object->next = nullptr;
        owner->of(c).put_into_bags({object, 1});
    }
}

Bytes usable_size(const void* p, const char* call) {
    NodeHeap* const owner = heap.contains(p) ? heap.owner(p) : nullptr;
    if (owner == nullptr) die_of_invalid_pointer(call, p, "was not allocated by numalloc");
    const Region& region = owner->big.region();
    const BagIndex b = region.bag_of(p);
    if (b.value < region.first_bag().value || b.value >= region.committed()) die_of_invalid_pointer(call, p, "was never allocated");
    const ClassId c = region.class_at(b);
    if (c != no_class) return shape_of(c).size;
    if (const BoundObject o = BoundHeap::find(owner, p); o.heap != nullptr) {
        if (const char* why = BoundHeap::why_invalid(o, p)) die_of_invalid_pointer(call, p, why);
        return BoundHeap::size_of(o);
    }
    const std::uint32_t run = address_of(p) % bag_bytes == 0 ? owner->big.big_run(b) : 0;
    if (run == 0) die_of_invalid_pointer(call, p, "is not an allocated object, or was freed already");
    return Bytes{run} << bag_shift;
}

void flush_quiet_outboxes(std::uint32_t age) {
    const std::uint32_t now = os::milliseconds();
    for_each_thread_heap([=](ThreadHeap* h) { h->outbox.flush_if_older(now, age); });
}

void forget_other_threads() {
    ThreadHeap* const own = this_thread_heap;
    if (own != &no_heap) own->generation = os::fork_gate.generation();
    for (unsigned n = 0; n < heap.heaps(); ++n)
        if (NodeHeap* node = heap.opened(NodeId{n})) node->slots.leave_behind(own->home == node ? 1 : 0);
}

}  // namespace numalloc

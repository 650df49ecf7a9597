#include "heap/profile/profile.h"

#include <new>

#include "heap/profile/busy.h"
#include "heap/profile/places.h"
#include "heap/profile/recorded.h"
#include "heap/program_heaps/any_object.h"
#include "heap/program_heaps/bound_heap.h"
#include "os/seeds.h"
#include "os/topology.h"

namespace numalloc::profile {

constinit bool switched_on = false;
constinit Recorded* recorded = nullptr;

namespace {

// The heaps for recorded small objects: one for each heap of the process, created when needed.
constinit std::atomic<BoundHeap*>* own_heaps = nullptr;

OsNode here() {
    return static_cast<OsNode>(os::topology().nodes() == 1 ? static_cast<int>(os::topology().os_node(NodeId{0}))
                                                           : os::current_os_node());
}

BoundHeap* heap_of(NodeId node) {
    std::atomic<BoundHeap*>& place = own_heaps[node.value];
    BoundHeap* heap = place.load(std::memory_order_acquire);
    if (heap != nullptr) return heap;
    BoundHeap* const made = BoundHeap::create(node);
    if (made == nullptr) return nullptr;
    if (place.compare_exchange_strong(heap, made, std::memory_order_acq_rel)) return made;
    made->destroy();
    return heap;
}

// `size`: the bytes by which the sampling chose the object.
bool record(ThreadProfile* thread, const void* p, Bytes size, Bytes asked, const BoundHeap* heap) {
    Stack stack;
    capture(stack, thread != nullptr ? &thread->trail : nullptr);
    return recorded->store.add(
        {.address = p, .heap = heap, .size = asked, .objects = recorded->sampling.weight(size), .allocated_on = here()},
        stack);
}

void freed(const Block& block) { recorded->store.add_freed(block, pages_of(block), here()); }

std::uint64_t shared_random() {
    return Random::mixed(recorded->random.fetch_add(Random::step, std::memory_order_relaxed) + Random::step);
}

Bytes class_size(ClassId c) { return shape_of(c).size; }

}  // namespace

bool start(Bytes period) {
    const Bytes bytes = align_up(sizeof(Recorded), os::page_size());
    void* const place = os::map(bytes + align_up(process_heap.heaps() * sizeof *own_heaps, os::page_size()));
    if (place == nullptr) return false;
    own_heaps = reinterpret_cast<std::atomic<BoundHeap*>*>(static_cast<char*>(place) + bytes);
    recorded = new (place) Recorded;
    recorded->sampling.period = min_of(period, Sampling::largest_period);
    recorded->random.store(os::layout_seed(os::SeedFor::profile), std::memory_order_relaxed);
    recorded->began = os::time_of_day();
    switched_on = true;
    return true;
}

std::int32_t draw(ThreadProfile& thread, ClassId c) {
    return recorded->sampling.distance(class_size(c), thread.random.next());
}

bool chooses(ThreadProfile* thread, Bytes size) {
    return recorded->sampling.chooses(size, thread != nullptr ? thread->random.next() : shared_random());
}

Allocation allocate(ThreadProfile* thread, NodeId node, ClassId c, Bytes asked) {
    const Busy self;
    BoundHeap* const heap = self.first() ? heap_of(node) : nullptr;
    const Allocation object = heap != nullptr ? heap->allocate(c) : Allocation{};
    if (object.p == nullptr) {
        recorded->store.count_lost();
        return {};
    }
    if (record(thread, object.p, class_size(c), asked, heap)) return object;
    BoundHeap::free(locate(object.p), object.p);
    return {};
}

void allocated(ThreadProfile* thread, const void* p, Bytes asked, const BoundHeap* heap) {
    if (!chooses(thread, asked)) return;
    const Busy self;
    if (self.first()) record(thread, p, asked, asked, heap);
    else recorded->store.count_lost();
}

const char* freeing(Location at, const void* p) {
    if (at.found != Found::big && at.found != Found::bound) return nullptr;
    const Busy self;
    const Block block = recorded->store.take_out(p);
    if (block.used()) freed(block);
    else if (at.found == Found::bound && owns(BoundHeap::of(at)))
        return BoundHeap::why_invalid(at, p) != nullptr ? nullptr : "was freed already";
    return nullptr;
}

void freeing_all(const BoundHeap* heap) {
    const Busy self;
    for (bool any = true; any;) {
        any = false;
        std::size_t place = 0;
        for (Block block; (block = recorded->store.take_out_of(heap, place)).used(); any = true) freed(block);
    }
}

void resized(const void* p, Bytes asked) {
    const Busy self;
    recorded->store.set_size(p, asked);
}

void* resize(ThreadProfile* thread, const Resize& resize) {
    const Location at = resize.at;
    if (at.found == Found::side) return nullptr;
    void* const p = at.owner->pages.region().address(at.bag);
    Block block;
    OsNode pages = unknown_node;
    // The record is taken out first: once the block has left its address, another object may get it.
    if (at.class_id == no_class) {
        const Busy self;
        block = recorded->store.take_out(p);
        if (block.used()) pages = pages_of(block);
    }
    void* const q = resize_object(resize);
    if (block.used()) {
        const Busy self;
        if (q == nullptr) recorded->store.put_back(block);
        else recorded->store.add_freed(block, pages, here());
    }
    if (q != nullptr) allocated(thread, q, resize.bytes, at.found == Found::bound ? BoundHeap::of(at) : nullptr);
    return q;
}

bool owns(const BoundHeap* heap) {
    for (unsigned n = 0; n < process_heap.heaps(); ++n)
        if (own_heaps[n].load(std::memory_order_relaxed) == heap) return true;
    return false;
}

}  // namespace numalloc::profile

#include "heap/program_heaps/bound_heap.h"

#include <new>

#include "base/atomic.h"
#include "base/check.h"
#include "os/fork_gate.h"

namespace numalloc {

namespace {

static_assert(small_limit / granule < BoundHeap::no_object, "a freed object is known by its granule in the bag");

char* start_of(BagNumber number) {
    return reinterpret_cast<char*>(process_heap.space().region(0) + (Address{number.value} << bag_shift));
}
BagNumber number_at(const void* p) { return BagNumber{(address_of(p) - process_heap.space().region(0)) >> bag_shift}; }
Bag& entry_of(BagNumber number) {
    const void* const start = start_of(number);
    Region& region = process_heap.owner(start)->pages.region();
    return region.bag(region.bag_of(start));
}

// Clears the marks of the freed objects of a bag that leaves its heap (heap/space/mark.h). Stops at a link that the
// program has overwritten.
void clear_marks(const Bag& bag, char* start) {
    if (bag.state != BagState::bound_small || bag.bound.free == BoundHeap::no_object) return;
    const Bytes end = Bytes{bag.bound.carved} * shape_of(ClassId{bag.class_id}).size;
    auto* object = reinterpret_cast<Object*>(start + Bytes{bag.bound.free} * granule);
    while (object != nullptr && address_of(object) - address_of(start) < end && was_freed(object)) {
        object->mark = 0;
        object = object->next;
    }
}

bool is_bound(BagState s) { return s == BagState::bound_small || s == BagState::bound_big; }

}  // namespace

BoundHeap::BoundHeap(NodeId node, const Spread& spread, const os::NodeMask* within)
    : node_(node),
      limited_(within != nullptr),
      within_(within != nullptr ? *within : os::NodeMask{}),
      spread_(spread) {}

// Takes a run for the heap and sets the policy of its pages.
void* BoundHeap::take(Bytes bytes, Bytes alignment, BagState state, ClassId c) {
    const os::NodeMask* const of_thread = thread_spill_limit;
    if (limited_) thread_spill_limit = &within_;
    void* const block = process_heap.take_big(node_, bytes, alignment, state, c);
    thread_spill_limit = of_thread;
    if (block != nullptr) spread_run(block, spread_);
    return block;
}

void BoundHeap::give(const Emptied& emptied) {
    if (emptied.number == no_number) return;
    char* const start = start_of(emptied.number);
    PageHeap& pages = process_heap.owner(start)->pages;
    const BagIndex run = pages.region().bag_of(start);
    const std::uint32_t bags = pages.region().bag(run).run;
    clear_marks(pages.region().bag(run), start);
    if (emptied.is_spread && is_whole_pages(start, Bytes{bags} << bag_shift)) ProcessHeap::bring_back(pages, run, bags);
    pages.give(run);
}

BoundHeap* BoundHeap::create(NodeId node, const Spread& spread, const os::NodeMask* within) {
    const os::NoFork until_done;
    void* const place = process_heap.take_alone(node, class_of(sizeof(BoundHeap)));
    return place == nullptr ? nullptr : new (place) BoundHeap(node, spread, within);
}

void BoundHeap::destroy() {
    const os::NoFork until_done;
    reset();
    process_heap.give_alone(this, class_of(sizeof(BoundHeap)));
}

void BoundHeap::give_all(BagNumber& list) {
    while (list != no_number) {
        const BagNumber number = list;
        list = entry_of(number).bound.next;
        give(number);
    }
}

void BoundHeap::reset() {
    const os::NoFork until_done;
    os::Guard guard(lock_);
    for (BagNumber& list : available_) give_all(list);
    give_all(rest_);
    used_ = 0;
    held_ = 0;
}

BagNumber& BoundHeap::list_of(const Bag& bag) {
    if (bag.state == BagState::bound_big || bag.taken == shape_of(ClassId{bag.class_id}).objects) return rest_;
    return available_[bag.class_id];
}

void BoundHeap::enlist(BagNumber& list, BagNumber number) {
    Bag::Bound& b = entry_of(number).bound;
    b.next = list;
    b.previous = no_number;
    if (list != no_number) entry_of(list).bound.previous = number;
    list = number;
}

void BoundHeap::unlist(BagNumber& list, BagNumber number) {
    const Bag::Bound& b = entry_of(number).bound;
    if (b.previous != no_number) entry_of(b.previous).bound.next = b.next;
    else list = b.next;
    if (b.next != no_number) entry_of(b.next).bound.previous = b.previous;
}

void BoundHeap::add_bag(ClassId c, void* start) {
    const ClassShape& shape = shape_of(c);
    Region& region = process_heap.owner(start)->pages.region();
    const BagIndex first = region.bag_of(start);
    Bag& bag = region.bag(first);
    bag.class_id = c.value;
    bag.taken = 0;
    bag.bound = {this, no_number, no_number, no_object, 0, is_spread()};
    region.mark_inside(first, shape.bags);
    held_ += shape.bags * bag_bytes;
    enlist(available_[c.value], number_at(start));
}

void BoundHeap::set_limit(Bytes bytes) {
    os::Guard guard(lock_);
    limit_ = bytes;
}

// Counts bytes towards the limit before take(), which runs without the lock, until that succeeds or fails.
bool BoundHeap::promise(Bytes bytes) {
    const Bytes all = held_ + promised_;
    if (all > limit_ || bytes > limit_ - all) return false;
    promised_ += bytes;
    return true;
}

Allocation BoundHeap::allocate_small(ClassId c) {
    const ClassShape& shape = shape_of(c);
    lock_.lock();
    if (available_[c.value] == no_number) {
        const bool allowed = promise(shape.bags * bag_bytes);
        // The lock is released because take() may have to open another node's heap.
        lock_.unlock();
        if (!allowed) return {};
        void* const block = take(shape.bags * bag_bytes, 1, BagState::bound_small, c);
        lock_.lock();
        promised_ -= shape.bags * bag_bytes;
        if (block != nullptr) add_bag(c, block);
        // Whether or not take() succeeded, another thread may have added a bag or freed an object.
        if (available_[c.value] == no_number) {
            lock_.unlock();
            return {};
        }
    }
    const BagNumber number = available_[c.value];
    Bag& bag = entry_of(number);
    char* const start = start_of(number);
    Allocation made;
    if (bag.bound.free != no_object) {
        made.p = start + Bytes{bag.bound.free} * granule;
        auto* const object = static_cast<Object*>(made.p);
        if (!take_mark(object, freed_key)) die_of_damage(object);
        const Object* const next = object->next;
        bag.bound.free =
            next == nullptr ? no_object : static_cast<std::uint16_t>((address_of(next) - address_of(start)) / granule);
    } else {
        made.p = start + Bytes{bag.bound.carved} * shape.size;
        store_relaxed(bag.bound.carved, static_cast<std::uint16_t>(bag.bound.carved + 1));
        made.zeroed = process_heap.owner(made.p)->pages.region().is_zero(made.p, shape.size);
    }
    used_ += shape.size;
    if (++bag.taken == shape.objects) {
        unlist(available_[c.value], number);
        enlist(rest_, number);
    }
    lock_.unlock();
    return made;
}

void* BoundHeap::allocate_big(Bytes n, Bytes alignment) {
    // The length of the run; 0 if no region can hold it, and then take() fails.
    const Bytes promised = Bytes{PageHeap::whole_pages(bags_for(n))} << bag_shift;
    {
        os::Guard guard(lock_);
        if (!promise(promised)) return nullptr;
    }
    void* const block = take(n, alignment, BagState::bound_big, no_class);
    if (block == nullptr) {
        os::Guard guard(lock_);
        promised_ -= promised;
        return nullptr;
    }
    const BagNumber number = number_at(block);
    Bag& bag = entry_of(number);
    bag.bound = {this, no_number, no_number, no_object, 0, is_spread()};
    // For pointers into the middle of the object (numalloc_heap_contains()). Writes the 32-byte entry of each bag;
    // other big objects write two entries.
    Region& region = process_heap.owner(block)->pages.region();
    region.mark_inside(region.bag_of(block), bag.run);
    const Bytes bytes = Bytes{bag.run} << bag_shift;
    os::Guard guard(lock_);
    promised_ -= promised;
    enlist(rest_, number);
    used_ += bytes;
    held_ += bytes;
    return block;
}

Allocation BoundHeap::allocate(Bytes n, Bytes alignment) {
    const os::NoFork until_done;
    // The class for the rounded size and the alignment has this alignment: see size_class.h.
    if (alignment <= bag_bytes && n <= small_limit && align_up(n, alignment) <= small_limit)
        return allocate_small(class_of(align_up(n, alignment), alignment));
    return {allocate_big(n, alignment)};
}

Allocation BoundHeap::allocate(ClassId c) {
    const os::NoFork until_done;
    return allocate_small(c);
}

const char* BoundHeap::why_invalid(Location at, const void* p) {
    const Region& region = at.owner->pages.region();
    const Bag& bag = region.bag(at.bag);
    const Bytes offset = address_of(p) - address_of(region.address(at.bag));
    const ClassId c = at.class_id;
    if (c == no_class) return offset == 0 ? nullptr : "points inside an object, not at its start";
    const unsigned index = object_at(c, offset);
    if (offset != Bytes{index} * shape_of(c).size || index >= shape_of(c).objects)
        return "points inside an object, not at its start";
    if (index >= load_relaxed(bag.bound.carved)) return "was never allocated";
    return was_freed(static_cast<const Object*>(p)) ? "was freed already" : nullptr;
}

const char* BoundHeap::take_back_small(Location at, Bag& bag, void* p, Emptied& emptied) {
    char* const start = static_cast<char*>(at.owner->pages.region().address(at.bag));
    const BagNumber number = number_at(start);
    os::Guard guard(lock_);
    const auto here =
        static_cast<std::uint16_t>((static_cast<char*>(p) - start) / static_cast<std::ptrdiff_t>(granule));
    auto* const object = static_cast<Object*>(p);
    if (bag.taken == 0 || was_freed(object)) return "was freed already";
    set_mark(object);
    object->next =
        bag.bound.free == no_object ? nullptr : reinterpret_cast<Object*>(start + Bytes{bag.bound.free} * granule);
    BagNumber& list = list_of(bag);
    BagNumber& available = available_[at.class_id.value];
    bag.bound.free = here;
    --bag.taken;
    used_ -= shape_of(at.class_id).size;
    if (&list == &rest_) {
        unlist(rest_, number);
        enlist(available, number);
    }
    // One empty bag of 32 KiB stays, because the next object of the class would take one again.
    const bool kept = bag.run == 1 && available == number && bag.bound.next == no_number;
    if (bag.taken > 0 || kept) return nullptr;
    unlist(available, number);
    held_ -= Bytes{bag.run} << bag_shift;
    emptied = {number, is_spread()};
    return nullptr;
}

const char* BoundHeap::free(Location at, void* p) {
    Emptied emptied;
    const char* const why = take_back(at, p, emptied);
    give(emptied);
    return why;
}

const char* BoundHeap::take_back(Location at, void* p, Emptied& emptied) {
    if (const char* why = why_invalid(at, p)) return why;
    Bag& bag = at.owner->pages.region().bag(at.bag);
    BoundHeap* const heap = bag.bound.heap;
    if (at.class_id != no_class) return heap->take_back_small(at, bag, p, emptied);
    os::Guard guard(heap->lock_);
    heap->unlist(heap->rest_, number_at(p));
    heap->used_ -= size_of(at);
    heap->held_ -= size_of(at);
    emptied = {number_at(p), heap->is_spread()};
    return nullptr;
}

bool BoundHeap::resize_big(Location at, std::uint32_t bags) {
    bags = PageHeap::whole_pages(bags);
    const Bytes before = size_of(at);
    if (at.class_id != no_class) return false;
    BoundHeap* const heap = of(at);
    // A spread run keeps its length: the memory behind it, and any part that it would leave, has its node's policy.
    if (heap->spread_.how != Spread::How::not_at_all) return (Bytes{bags} << bag_shift) == before;
    const Bytes more = (Bytes{bags} << bag_shift) > before ? (Bytes{bags} << bag_shift) - before : 0;
    {
        os::Guard guard(heap->lock_);
        if (more != 0 && !heap->promise(more)) return false;
    }
    const bool resized = at.owner->pages.resize(at.bag, bags);
    if (resized && more != 0)
        at.owner->pages.region().mark_inside(at.bag, bags, static_cast<std::uint32_t>(before >> bag_shift));
    os::Guard guard(heap->lock_);
    heap->promised_ -= more;
    if (!resized) return false;
    heap->used_ += (Bytes{bags} << bag_shift) - before;
    heap->held_ += (Bytes{bags} << bag_shift) - before;
    return true;
}

BoundHeap::Use BoundHeap::use() const {
    os::Guard guard(lock_);
    return {used_, held_};
}

void BoundHeap::validate() {
    if constexpr (checks_enabled) {
        os::Guard guard(lock_);
        Bytes used = 0;
        Bytes held = 0;
        const auto walk = [&](BagNumber& list) {
            lock_.assert_held();
            BagNumber previous;
            for (BagNumber n = list; n != no_number; n = entry_of(n).bound.next) {
                const Bag& bag = entry_of(n);
                NUMALLOC_ASSERT(is_bound(bag.state) && bag.bound.heap == this && bag.bound.previous == previous);
                NUMALLOC_ASSERT(&list_of(bag) == &list);
                previous = n;
                held += Bytes{bag.run} << bag_shift;
                if (bag.state == BagState::bound_big) {
                    used += Bytes{bag.run} << bag_shift;
                    continue;
                }
                std::uint32_t freed = 0;
                if (bag.bound.free != no_object)
                    for (auto* o = reinterpret_cast<Object*>(start_of(n) + Bytes{bag.bound.free} * granule);
                         o != nullptr; o = o->next)
                        ++freed;
                NUMALLOC_ASSERT(bag.taken + freed == bag.bound.carved);
                used += Bytes{bag.taken} * shape_of(ClassId{bag.class_id}).size;
            }
        };
        for (BagNumber& list : available_) walk(list);
        walk(rest_);
        NUMALLOC_ASSERT(used == used_ && held == held_);
    }
}

}  // namespace numalloc

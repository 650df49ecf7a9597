// Objects go back to their bags, without a lock but where a bag gets its first freed object or its last.
//
//   a list  -> runs of objects of one bag  -> each linked in front of the bag's freed objects, by one exchange of its word
//
// A run goes on while the next object is of the same bag: objects freed in the order of allocation are runs of a whole bag,
// scattered ones runs of one. A table that gathers the scattered ones of a bag costs more than the exchanges it saves.
//
// The walk over the objects, and the questions that are asked of each, need no lock: the list is the caller's. What may have
// changed until the exchange is which object of the bag was freed last; then the run is asked once more.
#include "base/check.h"
#include "heap/central/class_heap.h"
#include "heap/central/list_check.h"
#include "os/steps.h"

namespace numalloc {

namespace {

// The last of the objects that are linked at a distance of `step` from `first` on, before `stop`; `run`
// counts them, less the first. The address of the next is computed, and what the object says is only
// compared with it: so no load waits for the one before.
Object* last_in_row(Object* first, Bytes step, Address stop, std::uint32_t& run) {
    Address last = address_of(first);
    for (Address next = last + step; next != stop && address_of(reinterpret_cast<Object*>(last)->next) == next; next += step) {
        __asm__("" : "+r"(next));  // lest the compiler take the one for the other
        last = next;
        ++run;
    }
    return reinterpret_cast<Object*>(last);
}

bool lies_between(const Object* o, const Object* a, const Object* b) { return a < b ? a <= o && o <= b : b <= o && o <= a; }

}  // namespace

// Objects of one bag, linked; where the last leads is nobody's matter.
struct ClassHeap::Run {
    Object* first;
    Object* last;
    const Object* newest;  // of the bag's freed objects, when each of the run was compared with it
    BagIndex bag;
    std::uint32_t count;
};

// Sends the runs of a list home.
class ClassHeap::Sorter {
public:
    Sorter(ClassHeap& heap, Emptied& emptied) : heap_(heap), emptied_(emptied) {}
    Sorter(const Sorter&) = delete;
    Sorter& operator=(const Sorter&) = delete;

    // Most bags have some objects free and some in use, and are as they were when the run began.
    NUMALLOC_INLINE void send(const Run& run, Bag& home, FreeList freed) {
        const std::uint32_t together = freed.count() + run.count;
        if (NUMALLOC_LIKELY(freed.count() != 0 && together < carved(home))) {
            run.last->next = const_cast<Object*>(run.newest);
            os::between_steps();
            if (NUMALLOC_LIKELY(freed.exchange(home, freed.with(run.first, run.count)))) return count(freed.shard(), run.count);
        }
        send_in_any_case(run, home, freed);
    }
    void finish() {
        send_waiting();
        tell_count();
    }

private:
    static constexpr unsigned most_waiting = 32;

    static std::uint32_t carved(const Bag& bag) { return load_relaxed(bag.small.carved); }

    // What is wrong with the run, if the bag's freed objects are these.
    static const Object* freed_twice(Run& run, const Bag& home, FreeList freed) {
        if (freed.count() + run.count > carved(home)) return run.first;
        if (freed.newest() == run.newest) return nullptr;
        os::count_walked(run.count);
        const Object* o = run.first;
        for (std::uint32_t i = 0; i < run.count; ++i, o = o->next)
            if (o == freed.newest()) return o;
        run.newest = freed.newest();
        return nullptr;
    }

    // What a shard has less is told it once, not for each chain.
    void count(unsigned shard, std::uint32_t objects) {
        if (NUMALLOC_UNLIKELY(shard != counted_for_)) {
            tell_count();
            counted_for_ = shard;
        }
        counted_ += objects;
    }
    __attribute__((noinline)) void tell_count() {
        if (counted_ == 0) return;
        Shard& s = heap_.shard(counted_for_);
        s.taken.fetch_sub(counted_, std::memory_order_relaxed);
        s.activity.note_arrival();
        heap_.note_spare(counted_for_);
        counted_ = 0;
    }

    __attribute__((noinline)) void send_in_any_case(Run run, Bag& home, FreeList freed) {
        for (;;) {
            if (const Object* twice = freed_twice(run, home, freed)) die_of_second_free(twice);
            // The bag has to be listed, or to be given back: with the lock.
            if (freed.count() == 0 || freed.count() + run.count == carved(home)) break;
            run.last->next = freed.newest();
            os::between_steps();
            if (freed.exchange(home, freed.with(run.first, run.count))) return count(freed.shard(), run.count);
        }
        waiting_[waiting_count_++] = run;
        if (waiting_count_ == most_waiting) send_waiting();
    }

    // Those of one shard together.
    void send_waiting() {
        if (waiting_count_ == 0) return;
        os::count(os::Count::locked_batches);
        Held held(heap_);
        for (unsigned i = 0; i < waiting_count_; ++i) {
            if (waiting_[i].bag == no_bag) continue;
            held.hold_shard_of(home_of(waiting_[i]));
            for (unsigned j = i; j < waiting_count_; ++j)
                if (waiting_[j].bag != no_bag && held.is_of(home_of(waiting_[j]))) send_locked(waiting_[j], held);
        }
        waiting_count_ = 0;
    }

    Bag& home_of(const Run& run) const { return heap_.bag(run.bag); }

    void send_locked(Run& run, Held& held) {
        Bag& home = home_of(run);
        FreeList freed = FreeList::of(home);
        do {
            if (const Object* twice = freed_twice(run, home, freed)) {
                held.release();  // a handler of SIGABRT may allocate
                die_of_second_free(twice);
            }
            run.last->next = freed.newest();
        } while (!freed.exchange(home, freed.with(run.first, run.count)));
        count(freed.shard(), run.count);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        if (!home.small.listed) heap_.enlist(shard, run.bag);
        // The bag being carved is kept while it is short: the next allocation would ask for it
        // again. drain() lets go of it.
        if (shard.carving != run.bag || heap_.shape().bags > 1) heap_.give_if_empty(shard, run.bag, emptied_);
        run.bag = no_bag;
    }

    ClassHeap& heap_;
    Emptied& emptied_;
    // Not initialised: there is nothing in a place that is not taken.
    union {
        Run waiting_[most_waiting];
    };
    unsigned waiting_count_ = 0;
    unsigned counted_for_ = 0;
    std::uint32_t counted_ = 0;
};

// The questions that are asked of the objects of a list of one class.
class ClassHeap::Walk {
public:
    Walk(const Region& region, ClassId c) : check_(region, c), size_(shape_of(c).size), most_(shape_of(c).objects), bytes_(size_ * most_) {}

    bool in_class(const Object* o) const { return check_.in_class(o); }
    bool is_in(const Object* o, Address bag) const { return address_of(o) - bag < bytes_; }
    void ask(const Object* object, Address bag, const Object* newest) const {
        if (NUMALLOC_UNLIKELY(!check_.starts_object(object, bag))) die_of_interior(object);
        if (NUMALLOC_UNLIKELY(object == newest)) die_of_second_free(object);
    }

    // Makes a run of one object as long as it is, in the bag that begins at `bag`. Gives the object behind it. Objects in a row of
    // addresses are walked in a loop that only reads: programs mostly free in the order in which they allocated, or in its
    // reverse.
    __attribute__((noinline)) Object* lengthen(Run& run, Address bag) const {
        Object* before = run.first;
        Object* object = run.first;
        std::uint32_t count = 0;
        do {
            ask(object, bag, run.newest);
            if (NUMALLOC_UNLIKELY(count > most_)) die_of_second_free(object);
            ++count;
            before = object;
            object = object->next;
            // They begin where objects do, for the first does.
            const Bytes step = address_of(object) - address_of(before);
            if (step == size_ || step == 0 - size_) {
                Object* const last = last_in_row(before, step, step == size_ ? bag + bytes_ : bag - size_, count);
                if (NUMALLOC_UNLIKELY(lies_between(run.newest, before, last))) die_of_second_free(before);
                before = last;
                object = last->next;
            }
        } while (is_in(object, bag));
        os::count_walked(count - run.count);
        run.last = before;
        run.count = count;
        return object;
    }

private:
    const ObjectCheck check_;
    const Bytes size_;
    const std::uint32_t most_;
    const Bytes bytes_;
};

void ClassHeap::sort(Batch list, Emptied& emptied) {
    const Region& all = region();
    const Address region_start = all.start();
    const bool long_bags = shape().bags > 1;
    const Walk walk(all, class_);
    Sorter sorter(*this, emptied);
    Object* before = list.head;
    Object* object = list.head;
    while (object != nullptr) {
        if (NUMALLOC_UNLIKELY(!walk.in_class(object))) die_of_damage(before, "giving back");
        BagIndex b{(address_of(object) - region_start) >> bag_shift};
        if (long_bags) b = all.head_of(b);
        Bag& home = all.bag(b);
        const Address start = region_start + (Address{b.value} << bag_shift);
        NUMALLOC_ASSERT(home.state == BagState::small && home.class_id == class_.value);
        const FreeList freed = FreeList::of(home);
        Run run{object, object, freed.newest(), b, 1};
        walk.ask(object, start, run.newest);
        os::count_walked(1);
        object = object->next;
        if (walk.is_in(object, start)) object = walk.lengthen(run, start);
        __builtin_prefetch(object);  // the exchange holds up loads that come after it, but not this
        before = run.last;
        sorter.send(run, home, freed);
    }
    sorter.finish();
}

}  // namespace numalloc

// Objects go back to their bags, without a lock but where a bag gets its first freed object or its last.
//
//   a batch  -> a chain for each bag  -> linked in front of the bag's freed objects, by one exchange of its word
//
// The walk over the objects, and the questions that are asked of each, need no lock: the list is the caller's. What may have
// changed until the exchange is which object of the bag was freed last; then the chain is asked once more.
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
struct ClassHeap::Chain {
    Object* first;
    Object* last;
    const Object* newest;  // of the bag's freed objects, when each of the chain was compared with it
    BagIndex bag;
    std::uint32_t count;
};

// The chains of a batch, one a bag. A bag's place is known by its number; who comes to a place that is taken sends the chain
// there home.
class ClassHeap::Sorter {
public:
    Sorter(ClassHeap& heap, Emptied& emptied) : heap_(heap), emptied_(emptied) {}
    Sorter(const Sorter&) = delete;
    Sorter& operator=(const Sorter&) = delete;

    // The chain of the bag, to be added to.
    Chain& chain_of(BagIndex b) {
        const unsigned place = b.value % places;
        Chain& chain = chains_[place];
        const bool taken = (taken_places_ >> place & 1) != 0;
        if (taken && chain.bag == b) return chain;
        if (taken) send(chain);
        chain = {nullptr, nullptr, nullptr, b, 0};
        taken_places_ |= 1U << place;
        return chain;
    }
    void finish() {
        for (; taken_places_ != 0; taken_places_ &= taken_places_ - 1) send(chains_[__builtin_ctz(taken_places_)]);
        send_waiting();
        count(counted_for_, 0);
    }

private:
    static constexpr unsigned places = 32;  // a bit each in taken_places_

    Bag& bag_of(const Chain& chain) const { return heap_.bag(chain.bag); }
    std::uint32_t carved(const Chain& chain) const { return load_relaxed(bag_of(chain).small.carved); }

    // What is wrong with the chain, if the bag's freed objects are these.
    const Object* freed_twice(Chain& chain, FreeList freed) const {
        if (freed.count() + chain.count > carved(chain)) return chain.first;
        if (freed.newest() == chain.newest) return nullptr;
        os::count_walked(chain.count);
        const Object* o = chain.first;
        for (std::uint32_t i = 0; i < chain.count; ++i, o = o->next)
            if (o == freed.newest()) return o;
        chain.newest = freed.newest();
        return nullptr;
    }

    // What a shard has less is told it once, not for each chain.
    void count(unsigned shard, std::uint32_t objects) {
        if (shard != counted_for_ || objects == 0) {
            if (counted_ > 0) {
                Shard& s = heap_.shard(counted_for_);
                s.taken.fetch_sub(counted_, std::memory_order_relaxed);
                s.activity.set(Activity::used);
                heap_.note_spare(counted_for_);
            }
            counted_for_ = shard;
            counted_ = 0;
        }
        counted_ += objects;
    }

    void send(Chain& chain) {
        Bag& home = bag_of(chain);
        FreeList freed = FreeList::of(home);
        for (;;) {
            if (const Object* twice = freed_twice(chain, freed)) die_of_second_free(twice);
            // The bag has to be listed, or to be given back: with the lock.
            if (freed.count() == 0 || freed.count() + chain.count == carved(chain)) break;
            chain.last->next = freed.newest();
            os::between_steps();
            if (freed.exchange(home, {chain.first, freed.count() + chain.count, freed.shard()})) return count(freed.shard(), chain.count);
        }
        waiting_[waiting_count_++] = chain;
        if (waiting_count_ == places) send_waiting();
    }

    // Those of one shard together.
    void send_waiting() {
        if (waiting_count_ == 0) return;
        os::count(os::Count::locked_batches);
        Held held(heap_);
        for (unsigned i = 0; i < waiting_count_; ++i) {
            if (waiting_[i].bag == no_bag) continue;
            held.hold_shard_of(bag_of(waiting_[i]));
            for (unsigned j = i; j < waiting_count_; ++j)
                if (waiting_[j].bag != no_bag && held.is_of(bag_of(waiting_[j]))) send_locked(waiting_[j], held);
        }
        waiting_count_ = 0;
    }

    void send_locked(Chain& chain, Held& held) {
        Bag& home = bag_of(chain);
        FreeList freed = FreeList::of(home);
        do {
            if (const Object* twice = freed_twice(chain, freed)) {
                held.release();  // a handler of SIGABRT may allocate
                die_of_second_free(twice);
            }
            chain.last->next = freed.newest();
        } while (!freed.exchange(home, {chain.first, freed.count() + chain.count, freed.shard()}));
        count(freed.shard(), chain.count);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        if (!home.small.listed) heap_.enlist(shard, chain.bag);
        // The bag being carved is kept while it is short: the next allocation would ask for it
        // again. drain() lets go of it.
        if (shard.carving != chain.bag || heap_.shape().bags > 1) heap_.give_if_empty(shard, chain.bag, emptied_);
        chain.bag = no_bag;
    }

    ClassHeap& heap_;
    Emptied& emptied_;
    // Not initialised: there is nothing in a place that is not taken.
    union {
        Chain chains_[places];
    };
    union {
        Chain waiting_[places];
    };
    std::uint32_t taken_places_ = 0;
    unsigned waiting_count_ = 0;
    unsigned counted_for_ = 0;
    std::uint32_t counted_ = 0;
};

// Objects in a row that lie in one bag are checked in a loop that only reads, and stay linked as they are: programs mostly free
// in the order in which they allocated, or in its reverse.
void ClassHeap::sort(Batch list, Emptied& emptied) {
    const bool long_bags = shape().bags > 1;
    const Bytes bytes = Bytes{shape().bags} << bag_shift;
    const Bytes size = shape().size;
    const Bytes objects_bytes = size * shape().objects;
    const ObjectCheck check(region(), class_);
    Sorter sorter(*this, emptied);
    const Object* before = list.head;
    Object* object = list.head;
    while (object != nullptr) {
        if (NUMALLOC_UNLIKELY(!check.in_class(object))) die_of_damage(before);
        BagIndex b = region().bag_of(object);
        if (long_bags) b = region().head_of(b);
        const Bag& home = region().bag(b);
        const Address start = address_of(region().address(b));
        NUMALLOC_ASSERT(home.state == BagState::small && home.class_id == class_.value);
        Chain& chain = sorter.chain_of(b);
        if (chain.count == 0) chain.newest = FreeList::of(home).newest();
        const Object* const freed = chain.newest;
        Object* const first = object;
        Object* last = object;
        std::uint32_t run = 0;
        do {
            if (NUMALLOC_UNLIKELY(!check.starts_object(object, start))) die_of_interior(object);
            if (NUMALLOC_UNLIKELY(object == freed || chain.count + run > shape().objects)) die_of_second_free(object);
            ++run;
            last = object;
            // Objects in a row of addresses as well, up or down, begin where objects do.
            const Bytes step = address_of(object->next) - address_of(object);
            if (step == size || step == 0 - size) {
                last = last_in_row(object, step, step == size ? start + objects_bytes : start - size, run);
                if (NUMALLOC_UNLIKELY(lies_between(freed, object, last))) die_of_second_free(object);
            }
            object = last->next;
        } while (address_of(object) - start < bytes);
        os::count_walked(run);
        before = last;
        if (chain.count == 0) chain.first = first;
        else chain.last->next = first;
        chain.last = last;
        chain.count += run;
    }
    sorter.finish();
}

}  // namespace numalloc

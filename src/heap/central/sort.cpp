// Returns objects to their bags. Takes a lock only where a bag gets its first freed object, or all its objects.
//
//   a batch  -> a chain for each bag  -> linked in front of the bag's freed objects, by one exchange of its word
//
// The walk over the objects, and the check of each, need no lock: the caller owns the list. Before the exchange only
// the bag's newest freed object may have changed. If it has, the chain is checked again.
#include "base/check.h"
#include "heap/central/class_heap.h"
#include "heap/central/list_check.h"
#include "os/between_steps.h"

namespace numalloc {

namespace {

// Walks from `first` on, as long as each object links to the address `step` bytes further, which is not `stop`. Returns
// the last object, and adds the number of steps to `run`. Computes the next address and only compares the link with it,
// so that no load waits for the one before.
Object* last_in_row(Object* first, Bytes step, Address stop, std::uint32_t& run) {
    Address last = address_of(first);
    for (Address next = last + step; next != stop && address_of(reinterpret_cast<Object*>(last)->next) == next;
         next += step) {
        __asm__("" : "+r"(next));  // or the compiler would use it in place of `last`
        last = next;
        ++run;
    }
    return reinterpret_cast<Object*>(last);
}

bool lies_between(const Object* o, const Object* a, const Object* b) {
    return a < b ? a <= o && o <= b : b <= o && o <= a;
}

}  // namespace

// Linked objects of one bag. The link of the last one is undefined.
struct ClassHeap::Chain {
    Object* first;
    Object* last;
    const Object* newest;  // of the bag's freed objects, when the chain was compared with it
    BagIndex bag;
    std::uint32_t count;
};

// The chains of a batch, one for each bag. The bag's number decides its place. If another bag's chain is there, that
// chain is sent home first.
class ClassHeap::Sorter {
public:
    Sorter(ClassHeap& heap, Emptied& emptied) : heap_(heap), emptied_(emptied) {}
    Sorter(const Sorter&) = delete;
    Sorter& operator=(const Sorter&) = delete;

    // Returns the bag's chain, for adding objects. A new chain has the count 0, and no first or last object.
    Chain& chain_of(BagIndex b) {
        const unsigned place = b.value % places;
        Chain& chain = chains_[place];
        const std::uint32_t bit = 1U << place;
        if ((taken_places_ & bit) != 0) {
            if (chain.bag == b) return chain;
            send(chain);
        }
        taken_places_ |= bit;
        chain.bag = b;
        chain.count = 0;
        chain.newest = FreeList::of(heap_.bag(b)).newest();
        return chain;
    }
    void finish() {
        for (; taken_places_ != 0; taken_places_ &= taken_places_ - 1) send(chains_[__builtin_ctz(taken_places_)]);
        send_waiting();
        tell_count();
    }

private:
    static constexpr unsigned places = 32;  // a bit each in taken_places_

    Bag& bag_of(const Chain& chain) const { return heap_.bag(chain.bag); }

    // Returns an object of the chain that was freed twice, if the bag's freed objects are `freed`. Without the lock
    // this is only a suspicion: FreePages may have taken them, and lowered the count of objects that are here.
    const Object* freed_twice(Chain& chain, FreeList freed) const {
        if (freed.count() + chain.count > here_of(bag_of(chain))) return chain.first;
        const bool may_be_away = has_away(bag_of(chain));
        if (freed.newest() == chain.newest && !may_be_away) return nullptr;
        os::count_walked(chain.count);
        const Region& region = heap_.region();
        const Address start = address_of(region.address(chain.bag));
        const Object* o = chain.first;
        for (std::uint32_t i = 0; i < chain.count; ++i, o = o->next)
            if (o == freed.newest() || (may_be_away && is_away(region, chain.bag, address_of(o) - start))) return o;
        chain.newest = freed.newest();
        return nullptr;
    }

    // Adds up what to subtract from a shard's `taken`, so that it is written once, not for each chain.
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

    // The usual case: the bag has some objects free and some in use, and has not changed since the chain began.
    NUMALLOC_INLINE void send(Chain& chain) {
        Bag& home = bag_of(chain);
        FreeList freed = FreeList::of(home);
        os::between_steps();
        const auto then_free = static_cast<std::int32_t>(freed.count() + chain.count);
        const bool has_some = freed.count() != 0 && then_free < load_relaxed(home.small.here);
        if (NUMALLOC_LIKELY(has_some && freed.newest() == chain.newest)) {
            chain.last->next = freed.newest();
            os::between_steps();
            if (NUMALLOC_LIKELY(freed.exchange(home, freed.with(chain.first, chain.count))))
                return count(freed.shard(), chain.count);
        }
        send_in_any_case(chain, home, freed);
    }

    __attribute__((noinline)) void send_in_any_case(Chain& chain, Bag& home, FreeList freed) {
        for (;;) {
            if (freed_twice(chain, freed) != nullptr) break;
            // Listing or returning the bag needs the lock.
            if (freed.count() == 0 || freed.count() + chain.count == here_of(home)) break;
            chain.last->next = freed.newest();
            os::between_steps();
            if (freed.exchange(home, freed.with(chain.first, chain.count))) return count(freed.shard(), chain.count);
        }
        waiting_[waiting_count_++] = chain;
        if (waiting_count_ == places) send_waiting();
    }

    // Sends the chains of one shard together.
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
        } while (!freed.exchange(home, freed.with(chain.first, chain.count)));
        count(freed.shard(), chain.count);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        if (freed.count() == 0) {
            home.small.looked_at = Bag::Small::never;
            heap_.unlist(shard, chain.bag);  // with only objects away it was at the end of the list
        }
        if (!home.small.listed) heap_.enlist(shard, chain.bag);
        // Keep the bag being carved if it is short: the next allocation would request it again. drain() returns it.
        if (shard.carving != chain.bag || heap_.shape().bags > 1) heap_.give_if_empty(shard, chain.bag, emptied_);
        chain.bag = no_bag;
    }

    ClassHeap& heap_;
    Emptied& emptied_;
    // Not initialised: a place that is not taken holds nothing.
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

// Checks objects in a row that lie in one bag in a loop that only reads, and leaves them linked: programs mostly free
// in the order in which they allocated, or in reverse.
void ClassHeap::sort(Batch list, Emptied& emptied) {
    const bool long_bags = shape().bags > 1;
    const Bytes size = shape().size;
    const std::uint32_t most = shape().objects;
    const Bytes bytes = size * most;
    const ObjectCheck check(region(), class_);
    Sorter sorter(*this, emptied);
    Object* before = list.head;
    Object* object = list.head;
    while (object != nullptr) {
        if (NUMALLOC_UNLIKELY(!check.in_class(object))) die_of_damage(before);
        BagIndex b = region().bag_of(object);
        if (long_bags) b = region().head_of(b);
        const Bag& home = region().bag(b);
        const Address start = region().first_object(b, class_);
        NUMALLOC_ASSERT(home.state == BagState::small && home.class_id == class_.value);
        Chain& chain = sorter.chain_of(b);
        const Object* const freed = chain.newest;
        if (chain.count == 0) chain.first = object;
        else chain.last->next = object;
        std::uint32_t run = chain.count;
        do {
            if (NUMALLOC_UNLIKELY(!check.starts_object(object, start))) die_of_interior(object);
            if (NUMALLOC_UNLIKELY(object == freed || run > most)) die_of_second_free(object);
            ++run;
            before = object;
            object = object->next;
            // Objects whose addresses are in a row as well, up or down, need no check of their start.
            const Bytes step = address_of(object) - address_of(before);
            if (step == size || step == 0 - size) {
                Object* const last = last_in_row(before, step, step == size ? start + bytes : start - size, run);
                if (NUMALLOC_UNLIKELY(lies_between(freed, before, last))) die_of_second_free(before);
                before = last;
                object = last->next;
            }
        } while (address_of(object) - start < bytes);
        os::count_walked(run - chain.count);
        chain.last = before;
        chain.count = run;
    }
    sorter.finish();
}

}  // namespace numalloc

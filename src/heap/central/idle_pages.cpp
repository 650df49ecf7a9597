// Housekeeping returns the pages of objects above 32 KiB that nobody has needed: of as many as were idle for a period
// of purge_delay, in parts, whichever they are. Those that stay suffice for another period like it. Periods get longer
// while threads need again what has gone, so that a job that runs every few seconds does not pay for new pages each
// time. Smaller objects stay, because an object away has no mark: a second free of one above 32 KiB is found without
// it.
//
// Shard::Idle counts them at each call, without a look at any bag:
//
//   listed = objects of bags - taken - away - those that were never handed out
//   idle  >= the least, over the calls of the period, of
//            listed at the call before - fetched since then - left since then in another way
#include "heap/central/free_pages.h"

namespace numalloc {

namespace policy::idle {

// Bags that are passed over in a row, with the shard's lock held.
constexpr unsigned most_passed_over = 64;
// A period is at most 2^6 times purge_delay: 64 s, with the default.
constexpr unsigned most_doubled = 6;
// Milliseconds by which a thread's time may be older than that of another before it.
constexpr std::uint32_t late = 1000;

}  // namespace policy::idle

class ClassHeap::IdleLook {
public:
    IdleLook(ClassHeap& heap, std::uint32_t now, IdlePart& part)
        : heap_(heap), shape_(heap.shape()), pages_(heap, true), now_(now), part_(part) {}

    // Goes through the bags of the list from its front until as many objects have gone as were idle, or the part is
    // used up.
    void look_at(unsigned number, std::uint32_t delay) {
        for (bool more = begin(number, delay); more;) {
            const Bytes before = pages_.returned();
            pages_.return_pages();
            part_.bytes -= min_of(part_.bytes, pages_.returned() - before);
            Emptied emptied;
            more = go_on(number, emptied);
            heap_.give(emptied);
        }
    }

private:
    std::uint32_t listed(const Shard& shard) const NUMALLOC_REQUIRES(shard.lock) {
        const std::uint64_t all = std::uint64_t{shard.bags.load(std::memory_order_relaxed)} * shape_.objects;
        const std::uint32_t fresh =
            shard.carving == no_bag ? 0 : shape_.objects - heap_.bag(shard.carving).small.carved;
        const std::uint64_t others = shard.taken.load(std::memory_order_relaxed) + shard.away + fresh;
        return static_cast<std::uint32_t>(all - min_of(all, others));
    }
    void count(Shard& shard) const NUMALLOC_REQUIRES(shard.lock) {
        Shard::Idle& idle = shard.idle;
        const auto fetched = static_cast<std::uint32_t>(shard.fetched.load(std::memory_order_relaxed));
        const std::uint32_t stayed = idle.listed - min_of(idle.listed, fetched - idle.fetched);
        idle.fetched = fetched;
        idle.listed = listed(shard);
        idle.least = min_of(idle.least, min_of(stayed, idle.listed));
    }
    void begin_period(Shard& shard) const NUMALLOC_REQUIRES(shard.lock) {
        shard.idle.since = now_;
        shard.idle.least = shard.idle.listed;
        shard.idle.period = Shard::Idle::runs;
    }

    // A thread may come late, with a time before the period's start.
    bool is_over(const Shard::Idle& idle, std::uint32_t delay) const {
        return now_ - idle.since >= std::uint64_t{delay} << idle.doubled && idle.since - now_ - 1 >= policy::idle::late;
    }
    // Whether the idle objects of the period that ends are to go. If threads have needed again what went, the next one
    // is twice as long. It is as short again after two looks without that.
    bool end_period(Shard& shard) const NUMALLOC_REQUIRES(shard.lock) {
        Shard::Idle& idle = shard.idle;
        if (idle.came_back) {
            idle.came_back = false;
            idle.regretted = true;
            if (idle.doubled < policy::idle::most_doubled) ++idle.doubled;
            begin_period(shard);
            return false;
        }
        idle.period = Shard::Idle::over;
        if (idle.least > 0 && !idle.regretted && idle.doubled > 0) --idle.doubled;
        if (idle.least > 0) idle.regretted = false;
        return true;
    }

    // Whether there is a bag to work on.
    bool begin(unsigned number, std::uint32_t delay) {
        Held held(heap_);
        held.hold(number);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        if (shard.idle.period == Shard::Idle::at_work) return false;
        count(shard);
        if (shard.idle.period == Shard::Idle::runs && (!is_over(shard.idle, delay) || !end_period(shard))) return false;
        return pick(shard, shard.partial);
    }
    // The next bag is picked under the same lock: the bag at work is still in the list. If an object of it was freed
    // meanwhile, it is the first.
    bool go_on(unsigned number, Emptied& emptied) {
        Held held(heap_);
        held.hold(number);
        Shard& shard = held.shard();
        shard.lock.assert_held();
        const BagIndex b = pages_.bag(), next = heap_.bag(b).small.next;
        if (!pages_.all_gone()) {
            // After a refusal the next period begins with other bags, and this call ends.
            heap_.unlist(shard, b);
            part_.bytes = 0;
            begin_period(shard);
        }
        pages_.put_back(shard, emptied);
        return pages_.all_gone() && pick(shard, next);
    }
    // Takes the freed objects of a bag, `b` or one behind it. false: the part is used up, or a new period has begun.
    // Passes over few bags: with thp=on all are on huge pages, and those with only objects away come last. Where many
    // of both kinds are mixed, some keep their pages.
    bool pick(Shard& shard, BagIndex b) NUMALLOC_REQUIRES(shard.lock) {
        Shard::Idle& idle = shard.idle;
        for (unsigned passed_over = 0; b != no_bag && idle.least > 0; b = heap_.bag(b).small.next) {
            if (part_.bags == 0 || part_.bytes == 0) {
                idle.period = Shard::Idle::over;
                return false;
            }
            --part_.bags;
            const Bag& bag = heap_.bag(b);
            const std::uint32_t freed = FreeList::of(bag).count();
            if (load_acquire(bag.small.being_cut) || freed == 0 || freed == bag.small.looked_at ||
                heap_.pages_.breaks_huge_page(b, b + shape_.bags)) {
                if (++passed_over == policy::idle::most_passed_over) break;
                continue;
            }
            idle.period = Shard::Idle::at_work;
            pages_.take_freed(shard, b, idle.least);
            return true;
        }
        begin_period(shard);
        return false;
    }

    ClassHeap& heap_;
    const ClassShape& shape_;
    FreePages pages_;
    const std::uint32_t now_;
    IdlePart& part_;
};

void ClassHeap::return_idle_pages(std::uint32_t now, std::uint32_t delay, IdlePart& part) {
    if (shape().batch > 1 || hardened || !pages_.returns_pages()) return;
    // A fork's child would lose the bag at work.
    const os::Inside inside;
    if (!inside) return;
    const unsigned end = min_of(shards_.end(), policy::shards::of_large);
    for (unsigned i = 0; i < end && part.bags > 0 && part.bytes > 0; ++i) {
        if (!shards_.is_open(i)) continue;
        const std::uint64_t all = std::uint64_t{shard(i).bags.load(std::memory_order_relaxed)} * shape().objects;
        if (all > shard(i).taken.load(std::memory_order_relaxed)) IdleLook(*this, now, part).look_at(i, delay);
    }
}

}  // namespace numalloc

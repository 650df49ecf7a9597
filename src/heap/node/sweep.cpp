#include "heap/node/sweep.h"

namespace numalloc {

namespace policy::sweep {

// Smaller heaps are not swept: all that they could return is less than 16 MiB.
constexpr Bytes least = 16 * MiB;
// How far the bags grow between two sweeps.
constexpr std::uint64_t growth_part = 8;
constexpr Bytes least_growth = 4 * MiB;
constexpr std::uint64_t stayed_part = 2;
// Pages that came back are regretted if they are 1/4 of the growth. Twice as much may stay then, so that few sweeps are
// in vain.
constexpr std::uint64_t regretted_part = 4;
constexpr std::uint64_t for_regretted = 2;
// Bags are sparse if less than half of them is in use. With 3/4, a server whose heap shrinks and grows has 2.7 times
// as many page faults.
constexpr std::uint64_t sparse_part = 2;
// A step counts 8 classes or looks at 4 bags, which takes tens of microseconds.
constexpr unsigned classes_a_step = 8;
constexpr unsigned bags_a_step = 4;

}  // namespace policy::sweep

void Sweep::set_purge_delay(std::int32_t delay) {
    allowed_.store(delay >= 0, std::memory_order_relaxed);
    due_at_.store(delay >= 0 ? policy::sweep::least : never, std::memory_order_relaxed);
}

void Sweep::step(Shards& shards, PageHeap& pages, std::uint32_t now) {
    if (busy_.exchange(true, std::memory_order_acquire)) return;
    if (due_at_.exchange(0, std::memory_order_relaxed) != 0) begin(shards);
    if (!allowed_.load(std::memory_order_relaxed)) end(shards, 0);
    else if (looks_) look(shards, pages, now);
    else count(shards, pages);
    busy_.store(false, std::memory_order_release);
}

void Sweep::begin(const Shards& shards) {
    const Bytes there = shards.there();
    const Bytes grown = there - min_of(there_after_, there);
    const Bytes back = shards.came_back() - back_after_;
    regretted_ = back > grown / policy::sweep::regretted_part ? regretted_ + policy::sweep::for_regretted * back
                                                              : regretted_ / 2;
}

void Sweep::count(Shards& shards, PageHeap& pages) {
    for (unsigned i = 0; i < policy::sweep::classes_a_step && class_ < class_count; ++i, ++class_) {
        const ClassId c{class_};
        const ClassUse use = ClassHeap{shards, pages, c}.use();
        const Bytes bags = Bytes{use.bags * shape_of(c).bags} << bag_shift;
        const Bytes in_use = use.taken * shape_of(c).size;
        in_use_ += in_use;
        if (in_use < bags / policy::sweep::sparse_part) sparse_.add(class_);
    }
    if (class_ < class_count) return;
    const Bytes there = shards.there();
    free_ = there - min_of(in_use_, there);
    if (in_use_ >= there / policy::sweep::sparse_part || sparse_.empty()) return end(shards, 0);
    looks_ = true;
    class_ = sparse_.next(1);
    look_ = {.sparing = true};
}

void Sweep::look(Shards& shards, PageHeap& pages, std::uint32_t now) {
    if (!ClassHeap{shards, pages, ClassId{class_}}.go_on(look_, now, policy::sweep::bags_a_step)) return;
    returned_ += look_.returned;
    class_ = sparse_.next(class_ + 1);
    if (class_ < class_count && !look_.refused()) look_ = {.sparing = true};
    else end(shards, free_ - min_of(returned_, free_));
}

void Sweep::end(const Shards& shards, Bytes stayed) {
    const Bytes there = there_after_ = shards.there();
    back_after_ = shards.came_back();
    looks_ = false;
    class_ = 1;
    in_use_ = returned_ = 0;
    sparse_.clear();
    const Bytes growth = max_of(there / policy::sweep::growth_part, policy::sweep::least_growth);
    const Bytes due_at = there + max_of(growth, stayed / policy::sweep::stayed_part) + regretted_;
    due_at_.store(max_of(due_at, policy::sweep::least), std::memory_order_relaxed);
}

}  // namespace numalloc

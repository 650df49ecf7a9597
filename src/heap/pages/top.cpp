// The end of a node's bags: where the heap grows, and where its address space goes back.
#include "heap/pages/page_heap.h"

namespace numalloc {

namespace {

// A clean end of fewer bags stays: it costs nothing but addresses.
constexpr std::uint32_t trimmed_from = static_cast<std::uint32_t>(2 * MiB / bag_bytes);

}  // namespace

// Takes never-used bags, together with a free run that ends where they begin.
std::uint32_t PageHeap::extend_top(std::uint32_t bags, std::uint32_t alignment) {
    std::uint32_t tail = alignment == 1 ? free_run_before(top_) : no_bag;
    // Of 256 GiB and more the tree may overlook one that is long enough.
    if (tail != no_bag && bag(tail).run >= bags) tail = no_bag;
    const std::uint32_t run = tail != no_bag ? tail : aligned_in(top_, alignment);
    if (bags > region_.end_bag().value || run > region_.end_bag().value - bags) return no_bag;
    if (!region_.grow(std::uint64_t{run} + bags)) return extend_over(bags, alignment);
    const std::uint32_t old_top = top_;
    top_ = run + bags;
    if (tail != no_bag) {
        remove_free(tail);
        bag(tail).state = BagState::inside;
    } else if (run > old_top) {
        release(old_top, run - old_top, 0);
    }
    return run;
}

// The same where another mapping lies in the way: it stays allocated for ever, to nobody.
std::uint32_t PageHeap::extend_over(std::uint32_t bags, std::uint32_t alignment) {
    const std::uint32_t old_top = top_;
    const auto old_end = static_cast<std::uint32_t>(region_.committed());
    const std::uint32_t first = region_.step_over(std::uint64_t{bags} + alignment - 1);
    if (first == no_bag) return no_bag;
    mark(old_end, first - old_end, BagState::small);
    const std::uint32_t run = aligned_in(first, alignment);
    top_ = run + bags;
    if (old_end > old_top) release(old_top, old_end - old_top, 0);
    if (run > first) release(first, run - first, 0);
    return run;
}

// The free run at the top, which is clean, leaves the address space: limits on it, core dumps and locked memory count
// what is mapped. One system call where a purge has made many.
void PageHeap::trim_top(std::uint32_t run) {
    // What the kernel refused to take back (mlockall) is out of the queue, but marked; it stays.
    if (bag(run).run < trimmed_from || region_.count_dirty(BagIndex{run}, bag(run).run) != 0) return;
    const std::uint32_t freed_at = bag(run).extent.freed_at;
    remove_free(run);
    bag(run).state = BagState::inside;
    top_ = static_cast<std::uint32_t>(region_.shrink(run));
    if (top_ > run) add_free(run, top_ - run, 0, freed_at);
}

// The same of a range that was just purged and is marked as allocated still. How much of it is left below the top.
std::uint32_t PageHeap::trim_purged(std::uint32_t run, std::uint32_t length) {
    if (run + length != top_ || length < trimmed_from || region_.count_dirty(BagIndex{run}, length) != 0) return length;
    top_ = static_cast<std::uint32_t>(region_.shrink(run));
    if (top_ > run) return top_ - run;
    bag(run).state = BagState::inside;
    if (const std::uint32_t below = free_run_before(top_); below != no_bag && bag(below).extent.dirty == 0) trim_top(below);
    return 0;
}

}  // namespace numalloc

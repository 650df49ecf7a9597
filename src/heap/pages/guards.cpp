// Bags and pages that nobody may touch, so that who goes beyond an object meets a fault. The hardened library's alone.
//
//   a big object    | front |  usable pages ...  | guard |       front: a run of its own, a bag or the page that has one
//                     guard   big                                guard: of its own run, all behind the page that it ends in
//
//   a bag in so many         |  objects ...  | guard |           a run of its own: a bag
//                              small           guard
//
// A guard bag's entry says whose it is: it lives as long as that run, and both are free together, as one piece. Each guard is up to
// two of the kernel's mappings more, so there is a number that they stop at; they are also left out where the kernel refuses one. A big
// object without a guard behind it has a tail instead (heap/space/hardened.h), so its bag says how long the guard is.
//
// Under strict binding nothing is promised that is not there, so pages behind a guard stay, and big objects have none in front.
#include "base/random.h"
#include "heap/pages/page_heap.h"
#include "heap/pages/stretches.h"
#include "os/clock.h"

namespace numalloc {

namespace {

constinit std::atomic<std::uint32_t> guards{0};
constinit std::atomic<std::uint64_t> drawn{0};

bool may_have_more() { return guards.load(std::memory_order_relaxed) < policy::most_guards; }
void count(std::uint32_t more) { guards.fetch_add(more, std::memory_order_relaxed); }

bool chance_says_so() {
    Random random(secrets.place - drawn.fetch_add(1, std::memory_order_relaxed));
    return random.below(policy::bags_a_guard) == 0;
}

// What a guard's entry has in `taken`.
enum Of : std::uint16_t { before, behind };

}  // namespace

bool PageHeap::close(void* p, Bytes bytes) const { return os::withdraw(p, bytes, options_.populate); }

void PageHeap::make_guard(BagIndex first, std::uint16_t of) {
    mark(first, page_bags(), BagState::guard);
    bag(first).class_id = no_class.value;
    bag(first).taken = of;
}

// Bags that were taken with others, and serve for nothing: as clean or dirty as they were.
void PageHeap::leave_out(BagIndex first, std::uint32_t bags) {
    bag(first).state = BagState::inside;
    for_each_stretch(region_, first, first + bags, [&](BagIndex b, BagIndex end, bool dirty) {
        lock_.assert_held();
        free_.add(b, end - b, dirty ? Bag::Piece::dirty : Bag::Piece::clean, os::milliseconds(), top_);
        return true;
    });
}

// A big object's run with `front` bags more before it: of these the last become a guard. Where the object begins.
BagIndex PageHeap::split_front(BagIndex run, std::uint32_t front) {
    const std::uint32_t wide = page_bags();
    const BagIndex object = run + front;
    const BagIndex first = object - wide;
    {
        os::Guard guard(lock_);
        mark(object, bag(run).run - front, BagState::big);
        bag(object).class_id = no_class.value;
        bag(object).big = {};
        set_moved(object, no_node);
        make_guard(first, behind);
        use_.big_bags -= front;
        if (front > wide) leave_out(run, front - wide);
    }
    if (close(region_.address(first), Bytes{wide} << bag_shift)) {
        count(1);
    } else {
        os::Guard guard(lock_);
        leave_out(first, wide);
    }
    return object;
}

BagIndex PageHeap::take_guarded(std::uint32_t bags, std::uint32_t alignment, std::uint32_t moved) {
    bags = whole_pages(bags);
    const std::uint32_t front = max_of(alignment, page_bags());
    const bool may_have_front = may_have_more() && !options_.populate && Bytes{front} << bag_shift <= policy::guarded_alignment;
    const BagIndex run = may_have_front ? take(front + bags, front, BagState::big, no_class, moved) : none;
    return run != none ? split_front(run, front) : take(bags, alignment, BagState::big, no_class, moved);
}

void PageHeap::close_behind(BagIndex run, Bytes usable) {
    Bag& big = bag(run);
    const Bytes guard = (Bytes{big.run} << bag_shift) - usable;
    if (!may_have_more() || !close(static_cast<char*>(region_.address(run)) + usable, guard)) return;
    big.big.guard = static_cast<std::uint32_t>(guard);
    count(1);
}

bool PageHeap::open_behind(BagIndex run) {
    Bag& big = bag(run);
    if (big.big.guard == 0) return true;
    char* const end = static_cast<char*>(region_.address(run)) + (Bytes{big.run} << bag_shift);
    if (!os::allow_writes(end - big.big.guard, big.big.guard)) return false;
    big.big.guard = 0;
    count(0U - 1);
    return true;
}

bool PageHeap::move_guard(BagIndex run, Bytes usable) {
    Bag& big = bag(run);
    char* const p = static_cast<char*>(region_.address(run));
    const Bytes old = (Bytes{big.run} << bag_shift) - big.big.guard;
    const bool done = usable > old ? os::allow_writes(p + old, usable - old) : usable == old || close(p + usable, old - usable);
    if (done) big.big.guard += static_cast<std::uint32_t>(old - usable);
    return done;
}

// A bag with a guard behind it, where chance says so. Where pages are longer than a bag there is no place for one.
BagIndex PageHeap::take_small_guarded(std::uint32_t bags, ClassId c) {
    if (page_bags() > 1 || options_.populate || !may_have_more() || !chance_says_so()) return none;
    const BagIndex run = take(bags + 1, 1, BagState::small, c);
    if (run == none) return none;
    const BagIndex first = run + bags;
    {
        os::Guard guard(lock_);
        mark(run, bags, BagState::small);
        make_guard(first, before);
        use_.small_bags -= 1;
    }
    if (close(region_.address(first), bag_bytes)) {
        count(1);
    } else {
        os::Guard guard(lock_);
        leave_out(first, 1);
    }
    return run;
}

// The run and the guard bags that are its own.
PageHeap::Range PageHeap::with_guards(BagIndex run) const {
    const std::uint32_t wide = page_bags();
    Range all{run, run + bag(run).run};
    const auto is_guard = [&](BagIndex b, Of of) { return bag(b).state == BagState::guard && bag(b).taken == of; };
    if (bag(run).state == BagState::big && run.value >= region_.first_bag().value + wide && is_guard(run - wide, behind)) all.first = run - wide;
    if (bag(run).state == BagState::small && all.end < top_ && is_guard(all.end, before)) all.end = all.end + wide;
    return all;
}

bool PageHeap::open_guards(BagIndex run) {
    const Bag& first = bag(run);
    Range all;
    {
        os::Guard guard(lock_);
        all = with_guards(run);
    }
    const bool big = first.state == BagState::big;
    const std::uint32_t own = big && first.big.guard != 0 ? 1 : 0;
    const std::uint32_t bags = all.end - all.first - first.run;
    const bool closed = big && load_relaxed(first.big.thread) == Bag::Big::in_quarantine;
    if (own == 0 && bags == 0 && !closed) return true;
    if (!os::allow_writes(region_.address(all.first), Bytes{all.end - all.first} << bag_shift)) return false;
    count(0U - own - bags / page_bags());
    return true;
}

void PageHeap::make_free_with_guards(BagIndex run, Contents contents, std::uint32_t now) {
    const Range all = with_guards(run);
    const std::uint32_t bags = bag(run).run;
    bag(run).state = BagState::inside;
    if (all.end != run + bags) bag(run + bags).state = BagState::inside;
    make_free(all.first, all.end - all.first, DirtyLimit::kind_of(ClassId{bag(run).class_id}, bags), contents, now);
}

PageHeap::Guarded PageHeap::guarded_by(const void* p) const {
    const BagIndex at = region_.bag_of(p);
    if (at < region_.first_bag() || !region_.is_mapped(at)) return {};
    const std::uint32_t wide = page_bags();
    const BagIndex b = page_start(at);
    const auto head = [&](BagIndex last) { return bag(last).state == BagState::inside && bag(last).run < last.value ? last - bag(last).run : last; };
    if (bag(b).state == BagState::guard) {
        if (bag(b).taken == behind) return {b + wide, no_bag};
        return {b + wide, head(b - 1)};
    }
    const BagIndex run = head(b + (wide - 1));
    const Bag& big = bag(run);
    const bool is_guard = big.state == BagState::big && b - run < big.run &&
                          address_of(p) >= address_of(region_.address(run + big.run)) - big.big.guard;
    return is_guard ? Guarded{no_bag, run} : Guarded{};
}

}  // namespace numalloc

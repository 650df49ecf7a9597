// Big objects get huge pages on evidence: where memory was densely used before.
//
// The first touch of a huge page costs 2 MiB. A program that touches a page here and there (a large hash table, a
// buffer longer than what it holds) would be charged up to 512 times what it uses. Small objects fill their pages, so
// memory counts as densely used once they had it.
//
//                     big object              freed, densely used
//   never used ----------------------> normal --------------------> huge
//       |                                 ^   freed, sparsely used    |
//       | small objects                   +---------------------------+
//       +-----------------------------------------------------------> huge
//
// BagMark::normal is the state. It stays with the addresses, also when the end of the heap is unmapped and mapped again
// for a big object. So big objects that are used sparsely hold no more than what was resident there before.
//
// Invariants:
//   advice_changes_ == number of bags b, first_bag < b < committed, whose BagMark::normal differs from that of b - 1
//   if advice_changes_ >= PageHeapOptions::most_advice_changes, nothing changes here
#include <cstring>

#include "heap/pages/page_heap.h"
#include "heap/pages/stretches.h"
#include "heap/pages/written.h"

namespace numalloc {

namespace policy::evidence {

// Used densely: 28 of 32 samples hold data, so that huge pages cost at most about 1/8 more than what is used. Used
// sparsely: less than half of them (policy::written::used_part). Between the two the advice stays.
constexpr unsigned dense_samples = 28;
// Memory that was resident when the object got it shows nothing new. At least half must not have been.
constexpr std::uint32_t new_part = 2;

}  // namespace policy::evidence

void PageHeap::set_normal(BagRange range, bool on) {
    // The bag behind the range may differ from it, too.
    const BagIndex from = max_of(range.first, region_.first_bag() + 1);
    const BagIndex to{min_of<std::uint64_t>(std::uint64_t{range.end.value} + 1, region_.committed())};
    if (from < to) advice_changes_ -= region_.changes(BagMark::normal, from, to);
    set(BagMark::normal, range.first, range.end - range.first, on);
    if (from < to) advice_changes_ += region_.changes(BagMark::normal, from, to);
}

// The marks of the bags up to the larger end must be written.
void PageHeap::set_committed(std::uint64_t end) {
    const BagIndex old{region_.committed()}, to{end}, first = region_.first_bag() + 1;
    advice_changes_ += region_.changes(BagMark::normal, max_of(old, first), max_of(to, old));
    advice_changes_ -= region_.changes(BagMark::normal, max_of(to, first), max_of(to, old));
    region_.set_committed(end);
}

// The whole huge pages of [first, end); empty if there are none.
BagRange PageHeap::huge_pages_in(BagIndex first, BagIndex end) const {
    const std::uint64_t start = region_.start() >> bag_shift;
    const std::uint64_t from = align_up(start + max_of(first, region_.huge_from()).value, huge_bags) - start;
    const std::uint64_t to = align_down(start + end.value, Bytes{huge_bags}) - start;
    return from < to ? BagRange{BagIndex{from}, BagIndex{to}} : BagRange{};
}

// Marks the huge pages of never used bags [from, to) as normal, if they are about to be a big object's. Returns what to
// advise. The rest of the last huge page belongs to it.
BagRange PageHeap::without_evidence(BagIndex from, BagIndex to, BagState state) {
    if (!options_.huge_on_evidence || state != BagState::big || from >= to) return {};
    if (advice_changes_ >= options_.most_advice_changes) return {};
    const BagIndex end{min_of<std::uint64_t>(free_.aligned(to, huge_bags).value, region_.committed())};
    const BagRange part = huge_pages_in(from, end);
    if (region_.count(BagMark::normal, part.first, part.end - part.first) == part.end - part.first) return {};
    set_normal(part, true);
    return part;
}

void PageHeap::advise(const Advice& advice) {
    huge_again(advice.huge);
    if (const auto [first, end] = advice.normal; first < end) region_.advise(first, end - first, os::HugePages::off);
}

// After the range was advised as a whole.
void PageHeap::advise_as_marked(BagIndex first, BagIndex end) {
    for_each_stretch(region_, BagMark::normal, first, end, [&](BagIndex b, BagIndex to, bool normal) {
        if (normal) region_.advise(b, to - b, os::HugePages::off);
        return true;
    });
}

void PageHeap::learn_from(BagIndex run) {
    if (!options_.huge_on_evidence) return;
    const BagRange range = huge_pages_in(run, run + bag(run).run);
    const std::uint32_t bags = range.end - range.first;
    if ((bags - region_.count_dirty(range.first, bags)) * policy::evidence::new_part < bags || bags == 0) return;
    const unsigned written =
        count_written(static_cast<const char*>(region_.address(range.first)), Bytes{bags} << bag_shift);
    const bool dense = written >= policy::evidence::dense_samples;
    const bool sparse = written * policy::written::used_part < written_samples;
    const std::uint32_t normal = region_.count(BagMark::normal, range.first, bags);
    if (dense ? normal == 0 : !sparse || normal == bags) return;
    {
        os::Guard guard(lock_);
        if (advice_changes_ >= options_.most_advice_changes) return;
        set_normal(range, !dense);
    }
    region_.advise(range.first, bags, dense ? os::HugePages::on : os::HugePages::off);
}

}  // namespace numalloc

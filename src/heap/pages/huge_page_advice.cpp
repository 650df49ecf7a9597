// Huge pages that are broken, and huge pages that are dear.
//
// The kernel maps a whole huge page at the first touch of any of its bags. If a part of a huge page is returned,
// khugepaged fills it again as long as the mapping is advised to have huge pages. Returned memory would become resident
// by itself and stay so: 16 MiB of objects, one in each of 128 huge pages, would hold 256 MiB.
//
//   A huge page of which a part was returned while others use the rest is broken: its stretch is advised against
//   huge pages. Whole huge pages of the stretch stay huge until they are returned.
//   A stretch that is wholly free may have huge pages again when a part of it is taken, or, at the end of the heap,
//   when it is mapped again.
//   A stretch stays on normal pages if huge pages were dear just now (huge_page_touches.h).
//
// This advice covers whole stretches, because each change of advice may cost one of the 65,530 mappings that a process
// may have; that of evidence.cpp covers huge pages, and counts its changes.
#include "heap/pages/huge_page_advice.h"

#include "heap/pages/stretches.h"
#include "os/mapping.h"

namespace numalloc {

namespace policy::huge_pages {

// Around a broken huge page, and where huge pages are dear, 64 MiB are advised against them.
constexpr Bytes stretch = 64 * MiB;

}  // namespace policy::huge_pages

namespace {

constexpr std::uint32_t stretch_bags = bags_in(policy::huge_pages::stretch);

}  // namespace

void HugePageAdvice::set_normal(BagRange range, bool on) {
    // The bag behind the range may differ from it, too.
    const BagIndex from = max_of(range.first, region_.first_bag() + 1);
    const BagIndex to{min_of<std::uint64_t>(std::uint64_t{range.end.value} + 1, region_.committed())};
    if (from < to) advice_changes_ -= region_.changes(BagMark::normal, from, to);
    set(BagMark::normal, range.first, range.end - range.first, on);
    if (from < to) advice_changes_ += region_.changes(BagMark::normal, from, to);
}

void HugePageAdvice::set_committed(std::uint64_t end) {
    const BagIndex old{region_.committed()}, to{end}, first = region_.first_bag() + 1;
    advice_changes_ += region_.changes(BagMark::normal, max_of(old, first), max_of(to, old));
    advice_changes_ -= region_.changes(BagMark::normal, max_of(to, first), max_of(to, old));
    region_.set_committed(end);
}

// If another thread changes a mark meanwhile, the last one to advise sees it, so that advice and mark agree in the end.
void HugePageAdvice::advise_as_marked(BagRange range, bool settled) {
    bool again = false;
    for (BagIndex b = range.first; b < range.end;) {
        bool normal = false;
        BagIndex to = b;
        for_each_stretch(region_, BagMark::normal, b, range.end, [&](BagIndex, BagIndex end, bool is_normal) {
            normal = is_normal;
            to = end;
            return false;
        });
        if (normal || !settled || again) region_.advise(b, to - b, normal ? os::HugePages::off : os::HugePages::on);
        again = region_.count(BagMark::normal, b, to - b) != (normal ? to - b : 0);
        if (!again) b = to;
    }
}

// The mapped part of the bag's stretch that may be huge, without the known mappings of others, whose advice is theirs.
BagRange HugePageAdvice::stretch_of(BagIndex b) const {
    const std::uint64_t end = min_of<std::uint64_t>(free_.aligned(b + 1, stretch_bags).value, region_.committed());
    const BagRange stretch{max_of(aligned_down(b, stretch_bags), region_.huge_from()), BagIndex{end}};
    return foreign_.between(stretch, b);
}

void HugePageAdvice::no_more_huge(BagIndex b) {
    if (region_.count(BagMark::normal, b, 1) != 0) return;
    BagRange stretch;
    {
        os::Guard guard(lock_);
        stretch = stretch_of(b);
        set_normal(stretch, true);
    }
    advise_as_marked(stretch, false);
}

BagRange HugePageAdvice::whole_stretches(BagIndex run, BagIndex first, std::uint32_t bags) {
    const BagIndex end = first + bags;
    if (!may_be_huge(end - 1)) return {};
    const BagIndex run_end = run + free_.length(run);
    const BagIndex from = run <= region_.huge_from() && first < free_.aligned(region_.huge_from(), stretch_bags)
                              ? region_.huge_from()
                              : max_of(free_.aligned(run, stretch_bags), aligned_down(first, stretch_bags));
    const BagIndex to = min_of(aligned_down(run_end, stretch_bags), free_.aligned(end, stretch_bags));
    if (from >= to || region_.count(BagMark::normal, from, to - from) == 0) return {};
    set_normal({from, to}, false);
    return {from, to};
}

void HugePageAdvice::huge_again(BagRange range) {
    if (range.first == range.end) return;
    if (touches_.were_dear()) {
        os::Guard guard(lock_);
        set_normal(range, true);
    }
    advise_as_marked(range, false);
}

// The rest of a stretch follows its beginning, so that a stretch has one advice, unless its beginning may be of an
// object that needs evidence.
bool HugePageAdvice::leave_normal(BagIndex from, BagIndex to) {
    if (!may_be_huge(to - 1)) return false;
    const bool begins =
        from <= region_.huge_from() || address_of(region_.address(from)) % policy::huge_pages::stretch == 0;
    const bool decides = begins || to - from >= stretch_bags || options_.huge_on_evidence;
    const BagIndex first = max_of(from, region_.huge_from());
    const bool follows_normal = first == region_.huge_from() || region_.count(BagMark::normal, from - 1, 1) != 0;
    bool normal = decides ? touches_.were_dear() : follows_normal;
    // With other advice than the memory before, it is a mapping of its own, maybe the last one that the kernel grants:
    // then not even those that join others are granted.
    if (!normal && follows_normal) normal = !os::grants_a_mapping(region_.address(first));
    if (normal) region_.advise(first, to - first, os::HugePages::off);
    return normal;
}

// Counts the run's huge pages, from the first whole one on, and returns them. Empty if that one may have been touched,
// or is advised against huge pages.
BagRange HugePageAdvice::count_untouched(BagIndex run, std::uint32_t bags) {
    if (!touches_.is_on()) return {};
    const Address start = address_of(region_.address(run));
    const BagIndex first = run + static_cast<std::uint32_t>((align_up(start, os::huge_page) - start) >> bag_shift);
    const BagIndex end = run + bags;
    if (first >= end || !may_be_huge(first)) return {};
    if (region_.count_dirty(first, 1) != 0 || region_.count(BagMark::normal, first, 1) != 0) return {};
    touches_.count((end - first + huge_bags - 1) / huge_bags);
    return {first, end};
}

// Times the first touch of a huge page; where huge pages are dear, its stretch stays on normal pages. Returns whether
// to time the next one as well.
bool HugePageAdvice::time_touch(BagIndex b, Bytes own) {
    const HugePageTouches::Cost cost = touches_.time(region_.address(b), own);
    if (cost == HugePageTouches::Cost::dear) no_more_huge(b);
    return cost == HugePageTouches::Cost::unsure;
}

void HugePageAdvice::sample_cost(BagIndex run, std::uint32_t bags) {
    const auto [first, end] = count_untouched(run, bags);
    if (first == BagIndex{} || !touches_.take_sample()) return;
    BagIndex b = first;
    for (std::uint32_t i = 0; i < policy::huge_pages::touched_at_once && b < end; ++i, b = b + huge_bags)
        if (!time_touch(b, bag_bytes)) break;
}

void HugePageAdvice::sample_cost_of_small(BagIndex run, std::uint32_t bags, Bytes own) {
    const auto [first, end] = count_untouched(run, bags);
    if (first != run || own < policy::huge_pages::timed_from) return;
    (void)time_touch(first, own);
}

void HugePageAdvice::settle(BagIndex first, std::uint32_t bags) {
    region_.settle(first, bags);
    advise_as_marked({first, first + bags}, true);
}

}  // namespace numalloc

// Objects above 8 KiB get huge pages on evidence: where memory was densely used before.
//
// The first touch of a huge page costs 2 MiB. A program that touches a page here and there (a large hash table,
// buffers longer than what they hold) would be charged up to 512 times what it uses. Smaller objects fill their pages,
// so memory counts as densely used once they had it.
//
//                     object above 8 KiB      big object freed, densely used
//   never used ----------------------> normal --------------------> huge
//       |                                 ^   freed, sparsely used    |
//       | smaller objects                 +---------------------------+
//       +-----------------------------------------------------------> huge
//
// BagMark::normal is the state. It belongs to the addresses: a block that moves takes its state along, and the end of
// the heap has it again when it is unmapped and mapped for an object above 8 KiB. (Mapped for others, it is huge, and
// counts as never used.)
//
// A big object that grow_elsewhere() moves shows how it is used before it is freed. Objects from 8 to 512 KiB are not
// sampled: a huge page has several of them.
//
// Of a huge page that an object shares with its neighbours, the object that has half of it decides.
#include "heap/pages/huge_page_advice.h"
#include "heap/pages/written.h"

namespace numalloc {

namespace policy::evidence {

// Of eight samples, each in a page. Used densely: all hold data. Used sparsely: three or less do.
constexpr std::uint64_t samples = 8;
constexpr std::uint64_t sparse = 3;
// Memory that was resident when the object got it shows nothing new. At least half must not have been.
constexpr std::uint32_t new_part = 2;

}  // namespace policy::evidence

// The huge pages of which [first, end) has half.
BagRange HugePageAdvice::huge_pages_in(BagIndex first, BagIndex end) const {
    const std::uint64_t start = region_.start() >> bag_shift;
    // With half or more of it, the huge page at either end is in the range.
    const auto rounded = [&](BagIndex b, std::uint32_t up_from) {
        return align_down(start + b.value + (huge_bags - up_from), Bytes{huge_bags}) - start;
    };
    const std::uint64_t huge_from = align_up(start + region_.huge_from().value, huge_bags) - start;
    const std::uint64_t from = max_of(rounded(first, huge_bags / 2 + 1), huge_from);
    const std::uint64_t to =
        min_of(rounded(end, huge_bags / 2), align_down(start + region_.committed(), Bytes{huge_bags}) - start);
    const bool is_short = to - from == huge_bags && end - first < huge_bags / 2;
    return from < to && !is_short ? BagRange{BagIndex{from}, BagIndex{to}} : BagRange{};
}

// Whether the range may be marked: that makes no change of advice more, or there are few.
bool HugePageAdvice::may_mark(BagRange range, bool normal, std::uint32_t most_changes) const {
    if (advice_changes_ + 2 <= most_changes) return true;
    const auto differs = [&](BagIndex b) { return (region_.count(BagMark::normal, b, 1) != 0) != normal ? 1U : 0U; };
    const bool is_last = range.end.value >= region_.committed();
    const BagIndex to = is_last ? range.end : range.end + 1;
    const std::uint32_t after = differs(range.first - 1) + (is_last ? 0 : differs(range.end));
    const std::uint32_t before = region_.changes(BagMark::normal, range.first, to);
    return after <= before || advice_changes_ + (after - before) <= most_changes;
}

BagRange HugePageAdvice::without_evidence(BagIndex from, BagIndex to, BagState state, ClassId c) {
    if (!needs_evidence(state, c) || from >= to) return {};
    const BagRange part = huge_pages_in(free_.aligned(from, huge_bags), free_.aligned(to, huge_bags));
    const std::uint32_t bags = part.end - part.first;
    // Smaller ones leave half of the changes to big objects.
    const std::uint32_t most = options_.most_advice_changes / (state == BagState::big ? 1 : 2);
    if (region_.count(BagMark::normal, part.first, bags) == bags || !may_mark(part, true, most)) return {};
    set_normal(part, true);
    return part;
}

// How the range was used. The program may have protected pages of it or mapped something else there, so it reads only
// what the kernel says can be read. Reading a page that nobody has touched maps the kernel's zero page, so the samples
// of a normal range end where it cannot be dense any more.
HugePageAdvice::Use HugePageAdvice::use_of(BagRange range, bool is_normal) const {
    const char* const p = static_cast<const char*>(region_.address(range.first));
    const Bytes part = (Bytes{range.end - range.first} << bag_shift) / policy::evidence::samples;
    std::uint64_t written = 0;
    for (std::uint64_t i = 0; i < policy::evidence::samples; ++i) {
        const char* const sample = p + sample_in(i, part);
        if (!os::make_readable(sample, 1)) return Use::unknown;
        if (!is_zero(sample, written_sample)) ++written;
        else if (is_normal) return Use::unknown;
    }
    return written == policy::evidence::samples  ? Use::dense
           : written <= policy::evidence::sparse ? Use::sparse
                                                 : Use::unknown;
}

// The huge pages on which an object decides, without mappings of others, and its part of them. That is empty if most of
// it was resident when the program got it.
HugePageAdvice::Sampled HugePageAdvice::sampled(BagIndex run) const {
    // Room behind a growing block (Bag::Big) shows nothing.
    const BagIndex end = run + (bag(run).run - bag(run).big.room);
    const BagRange decides = foreign_.between(huge_pages_in(run, end), run);
    const BagRange part{max_of(run, decides.first), min_of(end, decides.end)};
    if (part.first >= part.end) return {};
    const std::uint32_t bags = part.end - part.first;
    if ((bags - region_.count_dirty(part.first, bags)) * policy::evidence::new_part < bags) return {};
    return {decides, part};
}

bool HugePageAdvice::learn_from(BagIndex run) {
    if (!options_.huge_on_evidence) return false;
    const auto [range, part] = sampled(run);
    if (part.first >= part.end) return false;
    const bool is_normal = region_.count(BagMark::normal, range.first, range.end - range.first) != 0;
    const Use use = use_of(part, is_normal);
    if (use != (is_normal ? Use::dense : Use::sparse)) return use == Use::dense;
    {
        os::Guard guard(lock_);
        if (!may_mark(range, !is_normal, options_.most_advice_changes)) return use == Use::dense;
        set_normal(range, !is_normal);
    }
    advise_as_marked(range, false);
    return use == Use::dense;
}

}  // namespace numalloc

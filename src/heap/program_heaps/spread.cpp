#include "heap/program_heaps/spread.h"

#include <numeric>

#include "os/numa_policy.h"

namespace numalloc {

namespace {

// Each stripe is a mapping of its own, and Linux allows a process 65,530 mappings.
constexpr Bytes most_stripes = 512;

struct Run {
    char* start;
    Bytes bytes;
};
Run run_of(Location at) { return {static_cast<char*>(at.owner->pages.region().address(at.bag)), bytes_of(at)}; }

// The pages of one unit of weight with which a run of this length has at most that many stripes.
std::uint32_t shortest_unit(Bytes bytes, std::uint32_t turns, std::uint32_t cycle) {
    const Bytes pages = bytes / os::page_size();
    return static_cast<std::uint32_t>(max_of<Bytes>(1, divide_up(pages * turns, most_stripes * cycle)));
}

// Binds the run in stripes: the nodes take turns, each for as many units as its weight.
void stripe(Run run, Bag::Big& big, const Spread& how) {
    const unsigned nodes = how.nodes.count();
    // In the lowest terms: a block that has a whole cycle keeps the shares when it grows.
    unsigned divisor = 0;
    for (unsigned i = 0; i < nodes; ++i) divisor = std::gcd(divisor, how.weights[i]);
    std::uint32_t cycle = 0;
    for (unsigned i = 0; i < nodes; ++i) cycle += how.weights[i] / divisor;
    big.stripe = shortest_unit(run.bytes, nodes, cycle);
    big.cycle = cycle;
    big.turns = static_cast<std::uint16_t>(nodes);
    const Bytes unit = big.stripe * os::page_size();
    unsigned i = 0;
    unsigned node = how.nodes.first();
    for (Bytes at = 0; at < run.bytes;) {
        const Bytes length = min_of(how.weights[i] / divisor * unit, run.bytes - at);
        os::bind(run.start + at, length, node, os::BindMode::preferred);
        at += length;
        i = (i + 1) % nodes;
        node = i == 0 ? how.nodes.first() : how.nodes.next(node + 1);
    }
}

// Discards the run's pages, which are on one node. Advises against huge pages: each would be on one node as a whole.
void discard(Run run) {
    os::discard(run.start, run.bytes);
    if (process_heap.options().huge_pages != HugePages::on) os::advise_huge(run.start, run.bytes, os::HugePages::off);
}

}  // namespace

void spread_big(Location at, const Spread& how) {
    if (process_heap.nodes() == 1 || at.found != Found::big) return;
    process_heap.note_spread(at);
    const Run run = run_of(at);
    discard(run);
    switch (how.how) {
        case Spread::How::interleaved: os::interleave(run.start, run.bytes, how.nodes); break;
        case Spread::How::bound: os::bind_to(run.start, run.bytes, how.nodes); break;
        case Spread::How::weighted: stripe(run, at.owner->pages.region().bag(at.bag).big, how); break;
        case Spread::How::not_at_all: break;
    }
    renew_tail(at);
}

bool is_whole_pages(const void* start, Bytes bytes) {
    return bytes % os::page_size() == 0 && address_of(start) % os::page_size() == 0;
}

void spread_run(void* start, const Spread& how) {
    if (process_heap.nodes() == 1 || how.how == Spread::How::not_at_all) return;
    const Region& region = process_heap.owner(start)->pages.region();
    const Bytes bytes = Bytes{region.bag(region.bag_of(start)).run} << bag_shift;
    if (!is_whole_pages(start, bytes)) return;
    discard({static_cast<char*>(start), bytes});
    if (how.how == Spread::How::interleaved) os::interleave(start, bytes, how.nodes);
    if (how.how == Spread::How::bound) os::bind_to(start, bytes, how.nodes);
}

void spread_as(Location other, Location at) {
    if (at.found != Found::big || !process_heap.is_spread(other)) return;
    PageHeap& from = other.owner->pages;
    process_heap.note_spread(at);
    const Run source = run_of(other);
    const Run run = run_of(at);
    discard(run);
    Bag::Big& big = at.owner->pages.region().bag(at.bag).big;
    const Bag::Big& pattern = from.region().bag(other.bag).big;
    big.stripe = pattern.stripe;
    big.cycle = pattern.cycle;
    big.turns = pattern.turns;
    if (pattern.stripe == 0) {
        os::bind_as(source.start, run.start, run.bytes);
    } else {
        big.stripe = max_of(pattern.stripe, shortest_unit(run.bytes, pattern.turns, pattern.cycle));
        const Bytes from_unit = pattern.stripe * os::page_size();
        const Bytes unit = big.stripe * os::page_size();
        // A block that has become shorter than the pattern repeats the units that it still has.
        const Bytes known = max_of<Bytes>(1, min_of<Bytes>(pattern.cycle, source.bytes / from_unit));
        for (Bytes i = 0; i * unit < run.bytes; ++i)
            os::bind_as(source.start + i % known * from_unit, run.start + i * unit, min_of(unit, run.bytes - i * unit));
    }
    renew_tail(at);
}

}  // namespace numalloc

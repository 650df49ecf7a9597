// Big objects with guards (heap/pages/guards.cpp) that become longer or shorter, and what is said of a fault in a guard.
#include "heap/process/big_faults.h"
#include "heap/process/big_quarantine.h"
#include "heap/process/locate.h"
#include "os/fault.h"
#include "os/report.h"

namespace numalloc {

// The guard moves by pages as long as the run has as many bags. Else it is opened, and closed again where the run ends then.
bool ProcessHeap::resize_guarded_in_place(Location at, Bytes usable, std::uint32_t bags) {
    PageHeap& pages = at.owner->pages;
    const Bag& run = pages.region().bag(at.bag);
    if (run.run == PageHeap::whole_pages(bags) && run.big.guard != 0) return pages.move_guard(at.bag, usable);
    if (!pages.open_behind(at.bag) || !resize_in_place(at, bags)) return false;
    pages.close_behind(at.bag, usable);
    return true;
}

void* ProcessHeap::resize_guarded(Location at, Bytes usable, std::uint32_t bags, bool may_stay, NodeId there) {
    PageHeap& pages = at.owner->pages;
    Region& region = pages.region();
    const Bytes old = bytes_of(at);
    const bool guarded = region.bag(at.bag).big.guard != 0;
    Location now = at;
    bool done = may_stay && resize_guarded_in_place(at, usable, bags);
    if (!done && there == at.owner->node)
        if (void* const q = grow_elsewhere(at, bags)) {
            now.bag = region.bag_of(q);
            pages.close_behind(now.bag, usable);
            done = true;
        }
    Bag::Big& big = region.bag(now.bag).big;
    if (done) {
        big.origin = origin_of(Form::malloc, 0);
        big.any_size = false;
        renew_tail(now);
        return region.address(now.bag);
    }
    if (guarded && big.guard == 0) {
        pages.close_behind(at.bag, old);
        renew_tail(at);
    }
    // Where there is no other memory, realloc leaves it as it is.
    if (usable < old) big.any_size = true;
    return nullptr;
}

namespace {

struct Range {
    Address begin;
    Bytes bytes;
};

// The first object of a run, or its last; no bytes where there is none.
Range object_of(NodeHeap* owner, BagIndex run, bool last) {
    if (run == no_bag) return {};
    const Region& region = owner->pages.region();
    const Address begin = address_of(region.address(run));
    if (region.bag(run).state == BagState::big) return {begin, size_of({owner, run, no_class, Found::big})};
    const ClassId c = region.class_at(run);
    if (region.bag(run).state != BagState::small || c == no_class) return {};
    const ClassShape& shape = shape_of(c);
    return {begin + (last ? (shape.objects - 1U) * Bytes{shape.size} : 0), shape.size - tail_bytes};
}

// A guard: of what lies on either side of it, what is nearer.
bool explain_guard(const os::Fault& fault) {
    const auto* const p = reinterpret_cast<const void*>(fault.address);
    NodeHeap* const owner = process_heap.contains(p) ? process_heap.owner(p) : nullptr;
    if (owner == nullptr) return false;
    const PageHeap::Guarded guarded = owner->pages.guarded_by(p);
    const Range before = object_of(owner, guarded.behind, true);
    const Range behind = object_of(owner, guarded.before, false);
    if (before.bytes == 0 && behind.bytes == 0) return false;
    const Bytes over = fault.address - (before.begin + before.bytes);
    const Bytes under = behind.begin - fault.address;
    const bool overflow = behind.bytes == 0 || (before.bytes != 0 && over < under);
    const Range& object = overflow ? before : behind;
    os::Line line;
    line << (overflow ? "overflow: " : "underflow: ") << name_of(fault.access) << " at " << p << ", byte "
         << std::uint64_t{overflow ? over + 1 : under} << (overflow ? " behind" : " before") << " the " << std::uint64_t{object.bytes}
         << "-byte object at " << reinterpret_cast<const void*>(object.begin);
    os::say(line);
    os::say_backtrace(name_of(fault.access), fault.instruction);
    return true;
}

}  // namespace

void explain_faults() {
    os::on_fault([](const os::Fault& fault) { return big_quarantine::explain(fault) || explain_guard(fault); });
}

}  // namespace numalloc

#include "heap/process/big_quarantine.h"

#include "base/atomic.h"
#include "base/random.h"
#include "heap/process/locate.h"
#include "os/memory.h"
#include "os/report.h"

namespace numalloc::big_quarantine {

namespace {

constinit std::atomic<Address> places[policy::big_in_quarantine] = {};
constinit std::atomic<std::uint64_t> random_state{0};

Location location_of(Address object) {
    auto* const p = reinterpret_cast<void*>(object);
    NodeHeap* const owner = process_heap.owner(p);
    return {owner, owner->pages.region().bag_of(p), no_class, Found::big};
}

// The page heap gives access again.
void let_go(Address object) {
    const Location at = location_of(object);
    at.owner->pages.give(at.bag);
}

}  // namespace

bool explain(const os::Fault& fault) {
    for (const auto& place : places) {
        const Address object = place.load(std::memory_order_acquire);
        if (object == 0) continue;
        const Bytes bytes = size_of(location_of(object));
        if (fault.address - object >= bytes) continue;
        os::Line line;
        line << "use after free: " << name_of(fault.access) << " at " << reinterpret_cast<const void*>(fault.address) << ", byte "
             << std::uint64_t{fault.address - object} << " of the " << std::uint64_t{bytes} << "-byte object at "
             << reinterpret_cast<const void*>(object);
        os::say(line);
        os::say_backtrace(name_of(fault.access), fault.instruction);
        return true;
    }
    return false;
}

bool put(Location at) {
    const Region& region = at.owner->pages.region();
    Bag& bag = region.bag(at.bag);
    void* const p = region.address(at.bag);
    if (bag.run > (region.end_bag() - region.first_bag()) / policy::quarantined_big_part) return false;
    store_relaxed(bag.big.thread, Bag::Big::in_quarantine);
    // Without access first: what another thread writes meanwhile is lost either way.
    if (!os::withdraw(p, bytes_of(at))) {
        store_relaxed(bag.big.thread, 0);
        return false;
    }
    Random random(secrets.place + random_state.fetch_add(1, std::memory_order_relaxed));
    const Address out = places[random.below(policy::big_in_quarantine)].exchange(address_of(p), std::memory_order_acq_rel);
    if (out != 0) let_go(out);
    return true;
}

Resting of(const NodeHeap& node) {
    Resting all;
    for (const auto& place : places) {
        const Address object = place.load(std::memory_order_acquire);
        if (object == 0) continue;
        const Location at = location_of(object);
        if (at.owner != &node) continue;
        ++all.objects;
        all.bags += node.pages.region().bag(at.bag).run;
    }
    return all;
}

bool empty() {
    bool any = false;
    for (auto& place : places) {
        const Address object = place.exchange(0, std::memory_order_acq_rel);
        if (object == 0) continue;
        let_go(object);
        any = true;
    }
    return any;
}

}  // namespace numalloc::big_quarantine

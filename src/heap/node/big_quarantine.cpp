#include "heap/node/big_quarantine.h"

#include "base/atomic.h"
#include "base/random.h"
#include "heap/node/locate.h"
#include "os/fault.h"
#include "os/memory.h"
#include "os/messages.h"

namespace numalloc::policy::quarantine {

// The process keeps 32 freed big objects, each of at most 1/256 of a node's addresses: 1/8 of them in all.
constexpr std::uint32_t big_places = 32;
constexpr Bytes big_part = 256;

}  // namespace numalloc::policy::quarantine

namespace numalloc::big_quarantine {

namespace {

constinit std::atomic<Address> places[policy::quarantine::big_places] = {};
constinit std::atomic<std::uint64_t> random_state{0};
constinit std::atomic<bool> explaining{false};

Location location_of(Address object) {
    auto* const p = reinterpret_cast<void*>(object);
    NodeHeap* const owner = process_heap.owner(p);
    return {owner, owner->pages.region().bag_of(p), no_class, Found::big};
}

// If the system refuses to restore access, the addresses are lost.
void let_go(Address object) {
    const Location at = location_of(object);
    if (!os::allow_writes(reinterpret_cast<void*>(object), bytes_of(at))) return;
    store_relaxed(at.owner->pages.region().bag(at.bag).big.thread, 0);
    at.owner->pages.give(at.bag);
}

bool explain(const os::Fault& fault) {
    for (const auto& place : places) {
        const Address object = place.load(std::memory_order_acquire);
        if (object == 0) continue;
        const Bytes bytes = bytes_of(location_of(object));
        if (fault.address - object >= bytes) continue;
        os::begin_explanation();
        const char* const access = fault.access == os::Access::write  ? "write"
                                   : fault.access == os::Access::read ? "read"
                                                                      : "access";
        os::Line line;
        line << "use after free: " << access << " at " << reinterpret_cast<const void*>(fault.address) << ", byte "
             << std::uint64_t{fault.address - object} << " of the " << std::uint64_t{bytes - tail_bytes}
             << "-byte object at " << reinterpret_cast<const void*>(object);
        os::say(line);
        os::say_caller(access, fault.instruction);
        return true;
    }
    return false;
}

}  // namespace

bool put(Location at) {
    const Region& region = at.owner->pages.region();
    Bag& bag = region.bag(at.bag);
    void* const p = region.address(at.bag);
    if (bag.run > (region.end_bag() - region.first_bag()) / policy::quarantine::big_part) return false;
    store_relaxed(bag.big.thread, Bag::Big::in_quarantine);
    // Access is removed before the pages: a write by another thread in between is lost either way.
    if (!os::withdraw(p, bytes_of(at))) {
        store_relaxed(bag.big.thread, 0);
        return false;
    }
    if (!explaining.exchange(true, std::memory_order_relaxed) && !os::on_fault(explain))
        explaining.store(false, std::memory_order_relaxed);
    Random random(secrets.place + random_state.fetch_add(1, std::memory_order_relaxed));
    const Address out =
        places[random.below(policy::quarantine::big_places)].exchange(address_of(p), std::memory_order_acq_rel);
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

#include "heap/guarded/guarded.h"

#include <atomic>
#include <cstring>

#include "heap/guarded/misuse.h"
#include "heap/profile/busy.h"
#include "heap/profile/stack.h"
#include "os/affinity.h"
#include "os/memory.h"
#include "os/numa_policy.h"
#include "os/seeds.h"
#include "os/topology.h"

namespace numalloc::guarded {

constinit std::uint32_t one_in = 0;

namespace {

constinit std::atomic<std::uint64_t> seeds{0};

// The value of the bytes behind an object up to the next multiple of 16, and of 16 bytes on the side without a guard
// page. A free checks that they are unchanged.
constexpr unsigned char canary = 0xC5;
constexpr Bytes canary_bytes = 16;

void note(Event& event) {
    profile::Stack stack;
    profile::capture(stack, nullptr);
    event.thread = os::thread_id();
    event.depth = min_of(stack.depth, deepest_stack);
    std::memcpy(event.frame, stack.frame, event.depth * sizeof *event.frame);
}

struct Stretch {
    unsigned char* begin;
    unsigned char* end;
};
struct Canaries {
    Stretch before, behind;
};
// The bytes of the first granule are never canaries: calloc clears at least a granule.
Canaries canaries_of(const Slot& slot, Address page) {
    const auto at = [](Address a) { return reinterpret_cast<unsigned char*>(a); };
    const Address end = slot.object + max_of<Bytes>(slot.bytes, granule);
    return {{at(max_of(page, slot.object - canary_bytes)), at(slot.object)},
            {at(end), at(min_of(page + slots->page, end + canary_bytes))}};
}
bool is_whole(Stretch bytes) {
    for (const unsigned char* p = bytes.begin; p < bytes.end; ++p)
        if (*p != canary) return false;
    return true;
}
void fill(Stretch bytes) {
    if (bytes.begin < bytes.end) std::memset(bytes.begin, canary, static_cast<std::size_t>(bytes.end - bytes.begin));
}

}  // namespace

bool start(std::uint32_t one_in_so_many) {
    if (!make_slots()) return false;
    seeds.store(os::secret_seed(os::SeedFor::guarded), std::memory_order_relaxed);
    os::on_fault(explain);
    one_in = one_in_so_many;
    return true;
}

void draw(Countdown& countdown) {
    const profile::Sampling sampling{one_in};
    countdown.left = one_in == 1 ? 0 : sampling.distance(1, countdown.random.next());
}

void begin(Countdown& countdown) {
    countdown.random = Random{Random::mixed(seeds.fetch_add(Random::step, std::memory_order_relaxed))};
    countdown.begun = true;
    draw(countdown);
}

Allocation allocate(Countdown& countdown, NodeId node, Bytes asked) {
    const Bytes page = slots->page;
    const Bytes bytes = max_of<Bytes>(asked, 1);
    const profile::Busy self;
    if (bytes > page || !self.first()) return {};
    const unsigned n = slots->take();
    if (n == slot_count) return {};
    const Address begin = slots->page_of(n);
    void* const place = reinterpret_cast<void*>(begin);
    if (!os::commit(place, page)) {
        slots->give(n);
        return {};
    }
    // If the kernel refuses, the page comes by first touch.
    if (os::topology().nodes() > 1 && node.value < os::topology().nodes())
        os::bind(place, page, os::topology().os_node(node), os::BindMode::preferred);
    Slot& slot = slots->slot[n];
    const bool right = (countdown.random.next() >> 63) != 0;
    slot.object = right ? begin + page - align_up(bytes, granule) : begin;
    slot.bytes = bytes;
    slot.node = node;
    note(slot.allocated);
    const Canaries canaries = canaries_of(slot, begin);
    fill(canaries.before);
    fill(canaries.behind);
    slot.state.store(State::used, std::memory_order_release);
    return {reinterpret_cast<void*>(slot.object), true};
}

void free(const void* p, const char* call) {
    if (const char* const why = why_invalid(p)) die_of(call, p, why);
    const unsigned n = slots->near(address_of(p));
    Slot& slot = slots->slot[n];
    const Address begin = slots->page_of(n);
    const Canaries canaries = canaries_of(slot, begin);
    if (!is_whole(canaries.before)) die_of(call, p, "was written to before its first byte");
    if (!is_whole(canaries.behind)) die_of(call, p, "was written to after its last byte");
    const profile::Busy self;
    // Another thread may free the object at the same time.
    State used = State::used;
    if (!slot.state.compare_exchange_strong(used, State::freed, std::memory_order_acq_rel))
        die_of(call, p, "was freed already");
    note(slot.freed);
    // If the kernel refuses, the slot is lost: a freed slot must be inaccessible before it is used again.
    if (os::hold_again(reinterpret_cast<void*>(begin), slots->page)) slots->give(n);
}

}  // namespace numalloc::guarded

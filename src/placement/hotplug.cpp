// CPUs that go offline and come back. Masks keep them, here and in the kernel:
//
//   kernel's mask == request & cpuset & ~offline
//
// So no mask has to be set when a CPU goes. If one is set nevertheless before the CPU comes back, kernels before
// Linux 6.2 keep only what is online: such masks are set again then.
#include "base/atomic.h"
#include "os/filter.h"
#include "os/topology.h"
#include "placement/internal.h"

namespace numalloc::placement {

namespace {

// The place's CPUs in word `w` by which the kernel's mask is not the one that was set, or that were offline.
std::uint64_t in_question(const ThreadRecord* record, Mask kernel, PlaceId id, unsigned w) {
    const std::uint64_t here = process.mask_of(id)[w];
    return here & ((request_word(record, w) ^ kernel[w]) | process.offline_word(w));
}

bool is_in_question(const ThreadRecord* record, Mask kernel, PlaceId id) {
    for (unsigned w = 0; w < process.words; ++w)
        if (in_question(record, kernel, id, w) != 0) return true;
    return false;
}

// Whether the kernel's mask lacks a CPU of the place that is `online`.
bool lacks_online(const ThreadRecord* record, Mask kernel, PlaceId id, Mask online) {
    for (unsigned w = 0; w < process.words; ++w) {
        const std::uint64_t here = process.mask_of(id)[w] & online[w];
        if ((request_word(record, w) & here & ~kernel[w]) != 0) return true;
    }
    return false;
}

bool came_back(PlaceId id, Mask online) {
    for (unsigned w = 0; w < process.words; ++w)
        if ((process.offline_word(w) & process.mask_of(id)[w] & online[w]) != 0) return true;
    return false;
}

// Before the CPUs that are back leave process.offline: the kernel's masks to be set again are those without them.
void set_masks_again() NUMALLOC_REQUIRES(process.lock) {
    NUMALLOC_MASK(kernel);
    for (ThreadRecord* record = process.records.first(); record != nullptr; record = record->next)
        if (record->tid != 0 && get_affinity(record->tid, kernel) > 0 && is_expected(record, kernel))
            record->bound ? set_bound_request(record, record->tid) : set_user_request(record, record->tid);
}

// Returns whether that is news.
bool note_online(PlaceId id, Mask online) NUMALLOC_REQUIRES(process.lock) {
    if (came_back(id, online)) set_masks_again();
    bool news = false;
    bool some = false;
    for (unsigned w = 0; w < process.words; ++w) {
        const std::uint64_t before = process.offline_word(w);
        const std::uint64_t here = process.mask_of(id)[w];
        const std::uint64_t now = (before & ~here) | (here & ~online[w]);
        store_relaxed(process.offline[w], now);
        news = news || now != before;
        some = some || now != 0;
    }
    process.some_offline.store(some, std::memory_order_relaxed);
    return news;
}

}  // namespace

bool follow_hotplug(const ThreadRecord* record, Mask kernel) {
    if (os::filtered()) return false;
    bool news = false;
    NUMALLOC_MASK(online);
    for (unsigned i = 0; i < process.places.count; ++i) {
        const PlaceId id{i};
        if (!is_in_question(record, kernel, id)) continue;
        if (!os::cpus_of_os_node(process.places[id].os_node, online.data(), process.words)) continue;
        news = note_online(id, online) || news;
        if (lacks_online(record, kernel, id, online)) break;  // someone has set the mask
    }
    return news;
}

}  // namespace numalloc::placement

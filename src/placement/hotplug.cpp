// CPUs that go offline and come back. A user mask and a request keep them, and so does the kernel's mask:
//
//   kernel's answer == request & cpuset & ~offline
//
// So no mask has to be set when a CPU goes. If one is set before the CPU comes back, kernels before Linux 6.2 keep only
// what is online: such masks are set again then.
#include "base/atomic.h"
#include "os/filter.h"
#include "os/topology.h"
#include "placement/internal.h"

namespace numalloc::placement {

namespace {

bool lacks_any(const ThreadRecord* record, Mask kernel, PlaceId id) {
    for (unsigned w = 0; w < process.words; ++w)
        if ((lower_word(record, w) & ~kernel[w] & process.mask_of(id)[w]) != 0) return true;
    return false;
}

bool lacks_online(const ThreadRecord* record, Mask kernel, PlaceId id, Mask online) {
    for (unsigned w = 0; w < process.words; ++w)
        if ((lower_word(record, w) & ~kernel[w] & process.mask_of(id)[w] & online[w]) != 0) return true;
    return false;
}

}  // namespace

Lacking find_lacking(const ThreadRecord* record, Mask kernel) {
    if (os::filtered()) return Lacking::unknown;
    Lacking result = Lacking::nothing;
    NUMALLOC_MASK(online);
    for (unsigned i = 0; i < process.places.count; ++i) {
        const PlaceId id{i};
        if (!lacks_any(record, kernel, id)) continue;
        if (!os::cpus_of_os_node(process.places[id].os_node, online.data(), process.words)) return Lacking::unknown;
        if (lacks_online(record, kernel, id, online)) return Lacking::online;
        result = Lacking::offline;
    }
    return result;
}

bool is_fallback(const ThreadRecord* record) {
    NUMALLOC_MASK(online);
    if (!record->bound || os::filtered() ||
        !os::cpus_of_os_node(process.places[record->place].os_node, online.data(), process.words))
        return false;
    for (unsigned w = 0; w < process.words; ++w)
        if ((lower_word(record, w) & online[w]) != 0) return false;
    return true;
}

void set_others_again(const ThreadRecord* record) {
    NUMALLOC_MASK(kernel);
    for (ThreadRecord* other = process.records.first(); other != nullptr; other = other->next) {
        if (other == record || other->tid == 0 || !other->written || is_forking(other)) continue;
        if (get_affinity(other->tid, kernel) <= 0 || !is_between(other, kernel)) continue;
        if (other->bound) set_bound(other, other->tid);
        else set_user_request(other, other->tid);
    }
}

}  // namespace numalloc::placement

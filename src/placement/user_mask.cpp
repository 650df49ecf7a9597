// The mask that the user gives a thread, and the one that the kernel has of it.
//
//   user mask     what the user allows:  a mask that was set, or all that the cpuset allows (`whole`)
//   bound mask    the user mask without the CPUs of other nodes
//   request       what set_affinity() is given for either. The kernel cuts it to the cpuset.
//
// The request for a whole mask has CPUs that the cpuset does not allow yet. The kernel adds them when the cpuset grows
// (Linux 6.2).
//
//   kernel's mask == request & cpuset     unless another process has set it
#include "placement/internal.h"

namespace numalloc::placement {

namespace {

// None for no_place: a reader without the lock may meet a thread that another one moves.
os::CpuMask cpus_of(PlaceId id) {
    os::CpuMask mask;
    if (id == no_place) return mask;
    for (unsigned w = 0; w < process.words; ++w) mask.data()[w] = process.mask_of(id)[w];
    return mask;
}

}  // namespace

os::CpuMask every_cpu() {
    os::CpuMask mask;
    for (unsigned w = 0; w < os::CpuMask::words; ++w) mask.data()[w] = ~std::uint64_t{0};
    return mask;
}

void set_user_mask(ThreadRecord* record, const os::CpuMask& mask) {
    for (unsigned w = 0; w < process.words; ++w) record->user_mask()[w] = mask.data()[w];
}

os::CpuMask user_mask_of(const ThreadRecord* record) {
    os::CpuMask mask;
    for (unsigned w = 0; w < process.words; ++w) mask.data()[w] = record->user_mask()[w];
    return mask;
}

os::CpuMask bound_mask_of(const ThreadRecord* record) { return user_mask_of(record) & cpus_of(record->place); }

os::CpuMask kernel_mask_of(const ThreadRecord* record) {
    return record->bound ? bound_mask_of(record) : user_mask_of(record);
}

os::CpuMask user_request_of(const ThreadRecord* record) {
    return record->whole.load(std::memory_order_relaxed) ? every_cpu() : user_mask_of(record);
}

os::CpuMask bound_request_of(const ThreadRecord* record) {
    return record->whole.load(std::memory_order_relaxed) ? cpus_of(record->place) : bound_mask_of(record);
}

os::CpuMask kernel_request_of(const ThreadRecord* record) {
    return record->bound ? bound_request_of(record) : user_request_of(record);
}

bool is_ours(const ThreadRecord* record, const std::uint64_t* mask, std::size_t words) {
    if (!record->bound) return false;
    for (unsigned w = 0; w < process.words; ++w)
        if ((w < words ? mask[w] : 0) != (record->user_mask()[w] & process.mask_of(record->place)[w])) return false;
    return true;
}

// Only the kernel knows: for a moment the caller may run on every CPU of the cpuset.
bool is_whole(const os::CpuMask& mine) {
    os::CpuMask allowed;
    if (os::set_affinity(0, every_cpu()) < 0) return false;
    if (os::get_affinity(0, allowed) > 0 && allowed == mine) return true;
    os::set_affinity(0, mine);
    return false;
}

bool widen(const ThreadRecord* record) {
    os::CpuMask kernel;
    if (record == nullptr || !record->bound || os::get_affinity(0, kernel) <= 0) return false;
    if (kernel == bound_mask_of(record)) return os::set_affinity(0, user_request_of(record)) == 0;
    if (!record->whole.load(std::memory_order_relaxed) || os::set_affinity(0, every_cpu()) < 0) return false;
    os::CpuMask allowed;
    if (os::get_affinity(0, allowed) > 0 && kernel == (allowed & cpus_of(record->place))) return true;
    os::set_affinity(0, kernel);
    return false;
}

void follow_user(ThreadRecord* record, const os::CpuMask& mask) {
    set_user_mask(record, mask);
    record->whole.store(false, std::memory_order_relaxed);
    record->bound = false;
    // A thread that runs alone stays unbound; its memory follows it to the new CPUs anyway.
    if (record->place == no_place && !process.at_first_use) return;
    place(record);
    apply(record, record->tid, true);
}

bool is_set(const ThreadRecord* record, const os::CpuMask& kernel) {
    return kernel == kernel_mask_of(record) || kernel == user_mask_of(record);
}

void renew_if_foreign(ThreadRecord* record, int tid) {
    os::CpuMask kernel;
    if (is_forking(record) || os::get_affinity(tid, kernel) <= 0 || is_set(record, kernel)) return;
    renew_user_mask(record, tid);
}

void renew_user_mask(ThreadRecord* record, int tid) {
    os::CpuMask kernel;
    if (os::get_affinity(tid, kernel) <= 0) return;
    os::CpuMask allowed;
    if (!record->whole.load(std::memory_order_relaxed) || os::set_affinity(tid, every_cpu()) < 0 ||
        os::get_affinity(tid, allowed) <= 0) {
        if (kernel != kernel_mask_of(record)) follow_user(record, kernel);
        return;
    }
    const bool ours = record->bound && kernel == (allowed & cpus_of(record->place));
    if (!ours && kernel != allowed) {
        os::set_affinity(tid, kernel);
        return follow_user(record, kernel);
    }
    if (allowed == user_mask_of(record)) {
        if (record->bound) os::set_affinity(tid, bound_request_of(record));
        return;
    }
    set_user_mask(record, allowed);
    if (record->place == no_place && !process.at_first_use) return;
    // There may be more room now, or less.
    if (process.at_first_use || !places_of(record).test(record->place.value)) place(record);
    apply(record, tid, true);
}

}  // namespace numalloc::placement

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
#include "base/atomic.h"
#include "placement/internal.h"

namespace numalloc::placement {

namespace {

void fill_every_cpu(Mask mask) {
    for (unsigned w = 0; w < process.words; ++w) mask[w] = ~std::uint64_t{0};
}

}  // namespace

void user_request_of(const ThreadRecord* record, Mask mask) {
    if (record->whole.load(std::memory_order_relaxed)) return fill_every_cpu(mask);
    for (unsigned w = 0; w < process.words; ++w) mask[w] = record->user_mask()[w];
}

namespace {

// Empty for no_place: a reader without the lock may meet a thread that another one moves.
void bound_request_of(const ThreadRecord* record, Mask mask) {
    const PlaceId place = record->place;
    user_request_of(record, mask);
    for (unsigned w = 0; w < process.words; ++w) mask[w] &= place == no_place ? 0 : process.mask_of(place)[w];
}

}  // namespace

bool allow_every_cpu(int tid) {
    NUMALLOC_MASK(all);
    fill_every_cpu(all);
    return set_affinity(tid, all) >= 0;
}

void set_user_mask(ThreadRecord* record, const std::uint64_t* words) {
    for (unsigned w = 0; w < process.words; ++w) record->user_mask()[w] = words[w];
}

void kernel_request_of(const ThreadRecord* record, Mask mask) {
    record->bound ? bound_request_of(record, mask) : user_request_of(record, mask);
}

bool is_kernel_request(const ThreadRecord* record, Mask mask) {
    NUMALLOC_MASK(request);
    kernel_request_of(record, request);
    return mask == request;
}

long set_user_request(const ThreadRecord* record, int tid) {
    NUMALLOC_MASK(request);
    user_request_of(record, request);
    return set_affinity(tid, request);
}

long set_bound_request(const ThreadRecord* record, int tid) {
    NUMALLOC_MASK(request);
    bound_request_of(record, request);
    return set_affinity(tid, request);
}

bool is_bound_mask(const ThreadRecord* record, Mask mask) {
    // Read once: another thread may move this one.
    const PlaceId place{load_relaxed(record->place.value)};
    if (!record->bound || place == no_place) return false;
    for (unsigned w = 0; w < process.words; ++w)
        if (mask[w] != (record->user_mask()[w] & process.mask_of(place)[w])) return false;
    return true;
}

bool is_user_mask(const ThreadRecord* record, Mask mask) {
    for (unsigned w = 0; w < process.words; ++w)
        if (mask[w] != record->user_mask()[w]) return false;
    return true;
}

bool is_expected_mask(const ThreadRecord* record, Mask kernel) {
    return record->bound ? is_bound_mask(record, kernel) : is_user_mask(record, kernel);
}

bool lies_within(const ThreadRecord* record, PlaceId place) {
    for (unsigned w = 0; w < process.words; ++w)
        if ((record->user_mask()[w] & ~process.mask_of(place)[w]) != 0) return false;
    return true;
}

namespace {

// Whether `mask` has those of the CPUs in `allowed` that belong to the place.
bool is_part(Mask mask, Mask allowed, PlaceId place) {
    for (unsigned w = 0; w < process.words; ++w)
        if (mask[w] != (place == no_place ? 0 : allowed[w] & process.mask_of(place)[w])) return false;
    return true;
}

// The same with the CPUs that the kernel allows the caller now.
bool is_allowed_part(Mask mask, PlaceId place) {
    NUMALLOC_MASK(allowed);
    return get_affinity(0, allowed) > 0 && is_part(mask, allowed, place);
}

}  // namespace

// Only the kernel knows: for a moment the caller may run on every CPU of the cpuset.
bool is_whole(Mask mine) {
    NUMALLOC_MASK(allowed);
    if (!allow_every_cpu(0)) return false;
    if (get_affinity(0, allowed) > 0 && allowed == mine) return true;
    set_affinity(0, mine);
    return false;
}

namespace {

bool runs_under_ours(const ThreadRecord* record) {
    NUMALLOC_MASK(kernel);
    return get_affinity(0, kernel) > 0 && is_bound_mask(record, kernel);
}
// The kernel's mask may be ours without CPUs that have gone since.
bool widen_cut(const ThreadRecord* record) {
    NUMALLOC_MASK(kernel);
    if (get_affinity(0, kernel) <= 0 || set_user_request(record, 0) < 0) return false;
    if (is_allowed_part(kernel, record->place)) return true;
    set_affinity(0, kernel);
    return false;
}

}  // namespace

bool widen_bound(const ThreadRecord* record) {
    return runs_under_ours(record) ? set_user_request(record, 0) == 0 : widen_cut(record);
}

void follow_user(ThreadRecord* record, Mask mask) {
    set_user_mask(record, mask);
    record->whole.store(false, std::memory_order_relaxed);
    record->bound = false;
    // A thread that runs alone stays unbound; its memory follows it to the new CPUs anyway.
    if (record->place == no_place && !process.at_first_use) return;
    place(record);
    apply(record, record->tid, true);
}

bool is_known_mask(const ThreadRecord* record, Mask kernel) {
    return is_bound_mask(record, kernel) || is_user_mask(record, kernel);
}

void renew_if_foreign(ThreadRecord* record, int tid) {
    NUMALLOC_MASK(kernel);
    if (is_forking(record) || get_affinity(tid, kernel) <= 0 || is_known_mask(record, kernel)) return;
    renew_user_mask(record, tid);
}

void renew_user_mask(ThreadRecord* record, int tid) {
    NUMALLOC_MASK(kernel);
    if (get_affinity(tid, kernel) <= 0) return;
    NUMALLOC_MASK(allowed);
    const bool expected = is_expected_mask(record, kernel);
    // A mask that was set needs no second look if it is there. If it is not, it may be cut.
    const bool looks = record->whole.load(std::memory_order_relaxed) || (record->bound && !expected);
    if (!looks || set_user_request(record, tid) < 0 || get_affinity(tid, allowed) <= 0) {
        if (!expected) follow_user(record, kernel);
        return;
    }
    const bool ours = record->bound && is_part(kernel, allowed, record->place);
    if (!ours && kernel != allowed) {
        set_affinity(tid, kernel);
        return follow_user(record, kernel);
    }
    if (is_user_mask(record, allowed)) {
        const long result = record->bound ? set_bound_request(record, tid) : 0;
        if (result < 0) was_refused(record, result);  // it has a deadline since, from outside
        return;
    }
    set_user_mask(record, allowed);
    if (record->place == no_place && !process.at_first_use) return;
    // There may be more room now, or less.
    if (process.at_first_use || !places_of(record).test(record->place.value)) place(record);
    apply(record, tid, true);
}

}  // namespace numalloc::placement

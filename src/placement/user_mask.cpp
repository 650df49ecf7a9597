// The mask that the user gives a thread, and the one that the kernel has of it.
//
//   set mask      what the user has set:  a mask, or nothing (`whole`), which means every CPU
//   user mask     of that, what the kernel allowed when it was last read: without CPUs that the cpuset forbids or that
//                 are offline
//   bound         the same two masks without the CPUs of other nodes
//   request       what set_affinity() is given: the set mask, or that of a bound thread
//
//   user mask <= kernel's mask <= set mask     both bound if the thread is, and
//   kernel's mask == request & cpuset & ~offline     unless someone else has set it
//
// If the kernel's mask lacks a CPU of the user mask, either that CPU is offline or someone else has set the mask. If it
// has more, then CPUs have come back, or the cpuset has grown (Linux 6.2).
#include "base/atomic.h"
#include "os/topology.h"
#include "placement/internal.h"

namespace numalloc::placement {

namespace {

void fill_every_cpu(Mask mask) {
    for (unsigned w = 0; w < process.words; ++w) mask[w] = ~std::uint64_t{0};
}

bool allow_every_cpu() {
    NUMALLOC_MASK(all);
    fill_every_cpu(all);
    return set_affinity(0, all) >= 0;
}

void user_request_of(const ThreadRecord* record, Mask mask) {
    if (record->whole.load(std::memory_order_relaxed)) return fill_every_cpu(mask);
    for (unsigned w = 0; w < process.words; ++w) mask[w] = set_mask_of(record)[w];
}

// Empty for no_place: a reader without the lock may meet a thread that another one moves.
void bound_request_of(const ThreadRecord* record, Mask mask) {
    const PlaceId place = record->place;
    user_request_of(record, mask);
    for (unsigned w = 0; w < process.words; ++w) mask[w] &= place == no_place ? 0 : process.mask_of(place)[w];
}

}  // namespace

void set_user_mask(ThreadRecord* record, const std::uint64_t* words) {
    for (unsigned w = 0; w < process.words; ++w)
        record->user_mask()[w] = record->user_mask()[process.words + w] = words[w];
}

void set_allowed(ThreadRecord* record, Mask mask) {
    for (unsigned w = 0; w < process.words; ++w) record->user_mask()[w] = mask[w];
}

void copy_user_mask(ThreadRecord* record, const ThreadRecord* from) {
    for (unsigned w = 0; w < 2 * process.words; ++w) record->user_mask()[w] = from->user_mask()[w];
    record->whole.store(from->whole.load(std::memory_order_relaxed), std::memory_order_relaxed);
    record->written.store(from->written.load(std::memory_order_relaxed), std::memory_order_relaxed);
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

namespace {

bool is_below_upper(const ThreadRecord* record, Mask kernel) {
    for (unsigned w = 0; w < process.words; ++w)
        if ((kernel[w] & ~upper_word(record, w)) != 0) return false;
    return true;
}

}  // namespace

void note_kept(ThreadRecord* record, Mask kernel) {
    record->written.store(true, std::memory_order_relaxed);
    if (!is_below_upper(record, kernel)) return;
    for (unsigned w = 0; w < process.words; ++w) record->user_mask()[w] &= ~(lower_word(record, w) & ~kernel[w]);
}

void set_bound(ThreadRecord* record, int tid) {
    NUMALLOC_MASK(kernel);
    if (set_bound_request(record, tid) == 0 && get_affinity(tid, kernel) > 0) note_kept(record, kernel);
}

namespace {

std::uint64_t set_word(const ThreadRecord* record, unsigned w) {
    return record->whole.load(std::memory_order_relaxed) ? ~std::uint64_t{0} : set_mask_of(record)[w];
}

// Whether user & here <= mask <= set & here, and mask is not empty. `here`: nullptr for every CPU.
bool lies_between(const ThreadRecord* record, const std::uint64_t* here, Mask mask) {
    bool any = false;
    for (unsigned w = 0; w < process.words; ++w) {
        const std::uint64_t of_place = here == nullptr ? ~std::uint64_t{0} : here[w];
        if ((mask[w] & ~(set_word(record, w) & of_place)) != 0) return false;
        if ((record->user_mask()[w] & of_place & ~mask[w]) != 0) return false;
        any = any || mask[w] != 0;
    }
    return any;
}

const std::uint64_t* bound_to(const ThreadRecord* record) {
    return record->bound ? process.mask_of(record->place) : nullptr;
}

}  // namespace

std::uint64_t lower_word(const ThreadRecord* record, unsigned w) {
    return record->user_mask()[w] & (record->bound ? process.mask_of(record->place)[w] : ~std::uint64_t{0});
}

std::uint64_t upper_word(const ThreadRecord* record, unsigned w) {
    return set_word(record, w) & (record->bound ? process.mask_of(record->place)[w] : ~std::uint64_t{0});
}

bool is_between(const ThreadRecord* record, Mask kernel) { return lies_between(record, bound_to(record), kernel); }

bool is_lower(const ThreadRecord* record, Mask kernel) {
    for (unsigned w = 0; w < process.words; ++w)
        if (kernel[w] != lower_word(record, w)) return false;
    return true;
}

bool is_ours(const ThreadRecord* record, Mask mask) {
    // Read once: another thread may move this one.
    const PlaceId place{load_relaxed(record->place.value)};
    return record->bound && place != no_place && lies_between(record, process.mask_of(place), mask);
}

bool is_users(const ThreadRecord* record, Mask mask) { return lies_between(record, nullptr, mask); }

bool is_narrowed(const ThreadRecord* record) {
    for (unsigned w = 0; w < process.words; ++w)
        if ((record->user_mask()[w] & ~process.mask_of(record->place)[w]) != 0) return true;
    return false;
}

namespace {

// Whether the words, as many as process.words, have every CPU that was online at the start.
bool has_every_cpu(const std::uint64_t* mask) {
    for (unsigned w = 0; w < process.words; ++w)
        if ((process.cpus[w] & ~mask[w]) != 0) return false;
    return true;
}

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

// A cpuset can allow no more than all CPUs. Otherwise only the kernel knows: for a moment the caller may run on every
// CPU of the cpuset. Not while a CPU is offline, which the mask would lose.
bool is_whole(ThreadRecord* main, Mask mine) {
    if (has_every_cpu(mine.data())) return true;
    NUMALLOC_MASK(allowed);
    if (!os::all_cpus_online() || !allow_every_cpu()) return false;
    main->written.store(true, std::memory_order_relaxed);
    if (get_affinity(0, allowed) > 0 && allowed == mine) return true;
    set_affinity(0, mine);
    return false;
}

bool runs_under_ours(const ThreadRecord* record) {
    NUMALLOC_MASK(kernel);
    if (get_affinity(0, kernel) <= 0) return false;
    return is_ours(record, kernel) ||
           (is_below_upper(record, kernel) && find_lacking(record, kernel) == Lacking::offline);
}

namespace {

// The kernel's mask may be ours cut to a cpuset that has changed since.
bool widen_in_cpuset(const ThreadRecord* record) {
    NUMALLOC_MASK(kernel);
    if (get_affinity(0, kernel) <= 0 || !allow_every_cpu()) return false;
    if (is_allowed_part(kernel, record->place)) return true;
    set_affinity(0, kernel);
    return false;
}

}  // namespace

bool widen_bound(const ThreadRecord* record) {
    if (runs_under_ours(record)) return set_user_request(record, 0) == 0;
    return record->whole.load(std::memory_order_relaxed) && widen_in_cpuset(record);
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

bool is_set(const ThreadRecord* record, Mask kernel) { return is_ours(record, kernel) || is_users(record, kernel); }

void renew_if_foreign(ThreadRecord* record, int tid) {
    NUMALLOC_MASK(kernel);
    if (is_forking(record) || get_affinity(tid, kernel) <= 0 || is_lower(record, kernel)) return;
    renew_user_mask(record, tid);
}

bool may_differ(const ThreadRecord* record) {
    if (!record->written.load(std::memory_order_relaxed)) return false;
    if (record->bound) return true;  // or narrower: its mask does not show what other nodes' CPUs do
    if (record->whole.load(std::memory_order_relaxed)) return !has_every_cpu(record->user_mask());
    for (unsigned w = 0; w < process.words; ++w)
        if (record->user_mask()[w] != set_mask_of(record)[w]) return true;
    return false;
}

bool can_stay(const ThreadRecord* record) {
    return record->place == no_place || places_of(record).test(record->place.value);
}

namespace {

bool has_more(Mask mask, const ThreadRecord* record) {
    for (unsigned w = 0; w < process.words; ++w)
        if ((mask[w] & ~record->user_mask()[w]) != 0) return true;
    return false;
}

}  // namespace

void note_allowed(ThreadRecord* record, Mask allowed) {
    const bool grown = has_more(allowed, record);
    set_allowed(record, allowed);
    if (grown) set_others_again(record);
}

namespace {

enum class Seen { as_set, foreign, unknown, gone };
constexpr unsigned most_tries = 8;

// Notes which CPUs have gone or come back. `foreign`: someone else may have set the mask. `gone`: the thread has ended.
Seen take_note(ThreadRecord* record, Mask kernel) NUMALLOC_REQUIRES(process.lock) {
    if (!is_below_upper(record, kernel)) return Seen::foreign;
    const Lacking lacking = find_lacking(record, kernel);
    if (lacking == Lacking::online) return Seen::foreign;
    if (lacking == Lacking::unknown) return Seen::unknown;
    const bool grown = has_more(kernel, record);
    for (unsigned w = 0; w < process.words; ++w) {
        std::uint64_t& user = record->user_mask()[w];
        user = (user & ~(lower_word(record, w) & ~kernel[w])) | kernel[w];
    }
    if (grown) set_others_again(record);
    return Seen::as_set;
}

// Reads the kernel's mask until it stays the same while /sys is read: a CPU may come back in between.
Seen read_and_note(ThreadRecord* record, int tid, Mask kernel) NUMALLOC_REQUIRES(process.lock) {
    NUMALLOC_MASK(again);
    for (unsigned tries = 0;; ++tries) {
        if (get_affinity(tid, kernel) <= 0) return Seen::gone;
        const Seen seen = take_note(record, kernel);
        if (seen != Seen::foreign || tries == most_tries) return seen;
        if (get_affinity(tid, again) <= 0) return Seen::gone;
        if (again == kernel) return seen;
    }
}

// Whether the mask that the kernel has follows from what it allows now, so that nobody else has set it.
bool follows(const ThreadRecord* record, Mask kernel, Mask allowed) {
    if (kernel == allowed && record->whole.load(std::memory_order_relaxed)) return true;
    return record->bound && record->whole.load(std::memory_order_relaxed) && is_part(kernel, allowed, record->place);
}

// Gives the thread all that its user allows and the kernel allows now.
void take_allowed(ThreadRecord* record, int tid, Mask allowed) NUMALLOC_REQUIRES(process.lock) {
    const bool same = allowed == user_mask_of(record);
    note_allowed(record, allowed);
    if (same && can_stay(record)) {
        if (record->bound) set_bound(record, tid);
        return;
    }
    if (record->place == no_place && !process.at_first_use) return;
    // There may be more room now, or less.
    if (process.at_first_use || !can_stay(record)) place(record);
    apply(record, tid, true);
}

}  // namespace

void renew_user_mask(ThreadRecord* record, int tid) {
    NUMALLOC_MASK(kernel);
    const Seen seen = read_and_note(record, tid, kernel);
    if (seen == Seen::gone) return;
    // Without /sys: a bound thread keeps what it has, and other masks grow again by themselves.
    if (seen == Seen::unknown && !record->bound) set_allowed(record, kernel);
    if (seen == Seen::unknown) return;
    if (seen == Seen::as_set && !may_differ(record)) return;
    const bool asks = record->whole.load(std::memory_order_relaxed) || seen == Seen::as_set || is_fallback(record);
    NUMALLOC_MASK(allowed);
    if (!asks || set_user_request(record, tid) < 0 || get_affinity(tid, allowed) <= 0) {
        if (seen == Seen::foreign) follow_user(record, kernel);
        return;
    }
    record->written.store(true, std::memory_order_relaxed);
    if (seen == Seen::foreign && !follows(record, kernel, allowed) && !is_fallback(record)) {
        set_affinity(tid, kernel);
        return follow_user(record, kernel);
    }
    take_allowed(record, tid, allowed);
}

}  // namespace numalloc::placement

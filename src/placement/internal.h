// What placement's own files share; nobody else includes it.
#pragma once

#include "os/lock.h"
#include "placement/placement.h"
#include "placement/policy.h"

namespace numalloc::placement {

enum class Mode : std::uint8_t { off, follow, active };

struct Process {
    // Constant once init() is done.
    Mode mode = Mode::off;
    unsigned words = 1;              // of a mask
    Places places;                   // but for the threads in them: these are under the lock
    std::uint64_t* masks = nullptr;  // [places][words]: the CPUs of each

    os::Lock<os::LockRank::threads> lock;
    Records records NUMALLOC_GUARDED_BY(lock);
    std::atomic<unsigned> next_number{0};  // written under the lock, read without
    unsigned promised_up_to NUMALLOC_GUARDED_BY(lock) =
        0;  // numbers from next_number to here count as threads: owners.h
    bool refusal_noted NUMALLOC_GUARDED_BY(lock) = false;
    PlaceId first_place NUMALLOC_GUARDED_BY(lock) = no_place;  // of main: policies count from there

    bool fork_widened = false;  // between fork's handlers, for these: the caller has its user's mask

    const std::uint64_t* mask_of(PlaceId id) const { return masks + std::size_t{id.value} * words; }
    unsigned numbers() const { return next_number.load(std::memory_order_relaxed); }
};
extern constinit Process process;

os::CpuMask user_mask_of(const ThreadRecord* record);
// What a bound thread's affinity is: its user's, less the other places.
os::CpuMask bound_mask_of(const ThreadRecord* record);
void set_user_mask(ThreadRecord* record, const os::CpuMask& mask);

// Whether `mask` is the one that we gave the thread. If not, somebody else was there (taskset,
// a cpuset, a raw system call) and theirs counts.
bool is_ours(const ThreadRecord* record, const std::uint64_t* mask, std::size_t words);
// Whether the calling thread runs under our mask now, as far as the kernel knows.
bool runs_under_ours();

// The places whose CPUs the thread's user allows, and all of them.
PlaceSet places_of(const ThreadRecord* record);
PlaceSet all_places();

// The policy's word for the thread of a number; no_place where none is allowed.
// `runs_on`: where its memory already lies, or no_place. `vacated`: policy.h.
PlaceId choose(unsigned number, const PlaceSet& allowed, PlaceId runs_on, Vacated vacated = {})
    NUMALLOC_REQUIRES(process.lock);
// Counts the thread to the place that was promised or is the policy's choice, or to none.
void place(ThreadRecord* record, PlaceId runs_on, Vacated vacated = {}) NUMALLOC_REQUIRES(process.lock);
void leave(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// The binding of a thread that ran alone until now.
void settle_runner(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// The thread is bound to another place, which its user's mask allows.
void move_to(ThreadRecord* record, PlaceId id) NUMALLOC_REQUIRES(process.lock);
// Makes the kernel's mask of thread `tid` what the record says. `wide`: it is the user's now.
void apply(ThreadRecord* record, int tid, bool wide) NUMALLOC_REQUIRES(process.lock);
// Owners, see owners.h. The place that was answered for a number, or no_place; a thread gets its number,
// or gives it back because it was never created; a thread is elsewhere now.
PlaceId answered_place(int owner) NUMALLOC_REQUIRES(process.lock);
void number_thread(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
void take_number_back(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
void owner_was_moved(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// The user's mask of a running thread has just become the kernel's.
void follow_user(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);

}  // namespace numalloc::placement

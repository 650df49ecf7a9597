// What placement's own files share; nobody else includes it.
#pragma once

#include "os/lock.h"
#include "placement/placement.h"
#include "placement/policy.h"

namespace numalloc::placement {

enum class Mode : std::uint8_t { off, follow, active };

// In active mode guarded by `lock` once init() is done, but for what is marked constant.
struct Process {
    Mode mode = Mode::off;                  // constant
    os::Lock<os::LockRank::threads> lock;
    Records records;
    Places places;                          // constant but for the threads in them
    std::uint64_t* masks = nullptr;         // [places][words]: the CPUs of each; constant
    unsigned next_number = 0;
    unsigned promised_up_to = 0;            // numbers from next_number to here count as threads: owners.h
    bool refusal_noted = false;
    bool fork_widened = false;              // between fork's handlers: the caller has its user's mask
    PlaceId first_place = no_place;         // of main: policies count from there

    const std::uint64_t* mask_of(PlaceId id) const { return masks + std::size_t{id.value} * records.words(); }
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

// All under the lock. The policy's word for the thread of a number; no_place where none is allowed.
// `runs_on`: where its memory already lies, or no_place.
PlaceId choose(unsigned number, const PlaceSet& allowed, PlaceId runs_on);
// Counts the thread to the place that was promised or is the policy's choice, or to none.
void place(ThreadRecord* record, PlaceId runs_on);
void leave(ThreadRecord* record);
// The binding of a thread that ran alone until now.
void settle_runner(ThreadRecord* record);
// The thread is bound to another place, which its user's mask allows.
void move_to(ThreadRecord* record, PlaceId id);
// Makes the kernel's mask of thread `tid` what the record says. `wide`: it is the user's now.
void apply(ThreadRecord* record, int tid, bool wide);
// Owners, see owners.h. The place that was answered for a number, or no_place; a thread gets its number,
// or gives it back because it was never created; a thread is elsewhere now.
PlaceId answered_place(int owner);
void number_thread(ThreadRecord* record);
void take_number_back(const ThreadRecord* record);
void owner_was_moved(const ThreadRecord* record);
// The user's mask of a running thread has just become the kernel's. Under the lock.
void follow_user(ThreadRecord* record);

}  // namespace numalloc::placement

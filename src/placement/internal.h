// Shared by placement's own files; no other file includes it.
#pragma once

#include "os/lock.h"
#include "placement/choose_place.h"
#include "placement/placement.h"

namespace numalloc::placement {

enum class Mode : std::uint8_t { off, follow, active };

struct Process {
    // Constant after init().
    Mode mode = Mode::off;
    unsigned words = 1;              // 64-bit words of a mask
    Places places;                   // constant but for the counts of threads, which are under the lock
    std::uint64_t* masks = nullptr;  // [places][words]: the CPUs of each place

    os::Lock<os::LockRank::threads> lock;
    Records records NUMALLOC_GUARDED_BY(lock);
    std::atomic<unsigned> next_number{0};  // written under the lock, read without it
    // Numbers from next_number up to here are promised and count as threads: owners.h.
    unsigned promised_up_to NUMALLOC_GUARDED_BY(lock) = 0;
    bool refusal_noted NUMALLOC_GUARDED_BY(lock) = false;
    PlaceId first_place NUMALLOC_GUARDED_BY(lock) = no_place;  // the place of main; policies start from it

    bool fork_widened = false;  // between fork's handlers: the caller's mask is widened to its user's

    const std::uint64_t* mask_of(PlaceId id) const { return masks + std::size_t{id.value} * words; }
    unsigned numbers() const { return next_number.load(std::memory_order_relaxed); }
};
extern constinit Process process;

// ---- Masks: user_mask.cpp.

os::CpuMask every_cpu();
os::CpuMask user_mask_of(const ThreadRecord* record);
void set_user_mask(ThreadRecord* record, const os::CpuMask& mask);
// The affinity of a bound thread: its user's mask without the CPUs of other places.
os::CpuMask bound_mask_of(const ThreadRecord* record);
// The thread's mask in the kernel, unless another process has changed it.
os::CpuMask kernel_mask_of(const ThreadRecord* record);
// What to give the kernel for the user's mask, and for the bound one.
os::CpuMask user_request_of(const ThreadRecord* record);
os::CpuMask bound_request_of(const ThreadRecord* record);
// The one of the two that holds now.
os::CpuMask kernel_request_of(const ThreadRecord* record);

// Whether `mask` is the one that placement set for the thread. If not, it was changed from outside (taskset, a cpuset,
// a raw system call), and that change takes effect.
bool is_ours(const ThreadRecord* record, const std::uint64_t* mask, std::size_t words);
// Whether `mine`, the caller's mask, is all that the cpuset allows.
bool is_whole(const os::CpuMask& mine);
// Gives the calling thread its user's mask in the kernel if it runs under ours. Returns whether it did. Takes no lock
// and changes no state, so it works between vfork and exec too.
bool widen(const ThreadRecord* record);
// Places a running thread by its mask in the kernel, which its user has just set.
void follow_user(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// Places a running thread anew if another process has set its mask or changed the cpuset. Costs four system calls for
// a whole mask, one for another. `tid`: 0 for the caller.
void renew_user_mask(ThreadRecord* record, int tid) NUMALLOC_REQUIRES(process.lock);

// The places whose CPUs the thread's user allows; and all places.
PlaceSet places_of(const ThreadRecord* record);
PlaceSet all_places();

// Returns the policy's choice for the thread with this number; no_place if no place is allowed. `runs_on`: where its
// memory already lies, or no_place. `vacated`: choose_place.h.
PlaceId choose(unsigned number, const PlaceSet& allowed, PlaceId runs_on, Vacated vacated = {})
    NUMALLOC_REQUIRES(process.lock);
// Counts the thread at its promised place, else at the policy's choice, or nowhere if no place is allowed.
void place(ThreadRecord* record, PlaceId runs_on, Vacated vacated = {}) NUMALLOC_REQUIRES(process.lock);
void leave(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// Binds a thread that ran alone until now.
void settle_runner(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// Binds the thread to another place, which its user's mask allows.
void move_to(ThreadRecord* record, PlaceId id) NUMALLOC_REQUIRES(process.lock);
// Sets the kernel's mask of thread `tid` to the record's. `wide`: the kernel's mask is now the user's.
void apply(ThreadRecord* record, int tid, bool wide) NUMALLOC_REQUIRES(process.lock);
// Owners, see owners.h. In this order: return the place answered for a number, or no_place; number a new thread; undo
// that if the thread was never created; note that a thread has moved.
PlaceId answered_place(int owner) NUMALLOC_REQUIRES(process.lock);
void number_thread(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
void take_number_back(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
void owner_was_moved(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);

}  // namespace numalloc::placement

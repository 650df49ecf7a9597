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

os::CpuMask user_mask_of(const ThreadRecord* record);
// The affinity of a bound thread: its user's mask without the CPUs of other places.
os::CpuMask bound_mask_of(const ThreadRecord* record);
void set_user_mask(ThreadRecord* record, const os::CpuMask& mask);

// Whether `mask` is the one that placement set for the thread. If not, it was changed from outside (taskset, a cpuset,
// a raw system call), and that change takes effect.
bool is_ours(const ThreadRecord* record, const std::uint64_t* mask, std::size_t words);
// Whether the calling thread runs under our mask now, according to the kernel.
bool runs_under_ours();

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
// Called when a running thread's mask in the kernel is one that its user has just set: places the thread by it.
void follow_user(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);

}  // namespace numalloc::placement

// Shared by placement's own files; no other file includes it.
#pragma once

#include <cstring>

#include "os/lock.h"
#include "placement/choose_place.h"
#include "placement/placement.h"

namespace numalloc::placement {

enum class Mode : std::uint8_t { off, follow, active };

struct Process {
    // Constant after init().
    Mode mode = Mode::off;
    bool at_first_use = false;       // binding=auto: threads are bound when they allocate, not when they are created
    unsigned words = 1;              // 64-bit words of a mask
    Places places;                   // constant but for the counts of threads, which are under the lock
    std::uint64_t* masks = nullptr;  // [places][words]: the CPUs of each place

    // A fork waits for this lock for a moment only, and its holder for no fork: fork_child() makes anew what it guards.
    os::PassingLock<os::LockRank::threads> lock;
    Records records NUMALLOC_GUARDED_BY(lock);
    std::atomic<unsigned> next_number{0};  // written under the lock, read without it
    // Numbers from next_number up to here are promised and count as threads: owners.h.
    unsigned promised_up_to NUMALLOC_GUARDED_BY(lock) = 0;
    std::atomic<std::uint64_t> bound_threads{0};  // these two: written under the lock, read without it
    std::atomic<std::uint64_t> unbound_threads{0};
    bool refusal_noted NUMALLOC_GUARDED_BY(lock) = false;
    PlaceId first_place NUMALLOC_GUARDED_BY(lock) = no_place;  // the place of main; policies start from it

    // Between fork's handlers; written by the thread that has closed the gate.
    unsigned forks = 0;      // in progress, one within the other: its handlers may fork, too
    unsigned wide_fork = 0;  // the one of them that gave the thread its user's mask; 0: none

    const std::uint64_t* mask_of(PlaceId id) const { return masks + std::size_t{id.value} * words; }
    unsigned numbers() const { return next_number.load(std::memory_order_relaxed); }
};
extern constinit Process process;

// A mask as long as the kernel's own, process.words words: 8 to 128 bytes on most machines, where os::CpuMask has
// 1 KiB. Programs call malloc and set affinity on stacks of a page or two. The words are not the Mask's.
class Mask {
public:
    explicit Mask(std::uint64_t* words) : word_(words) {}

    std::uint64_t& operator[](unsigned w) const { return word_[w]; }
    std::uint64_t* data() const { return word_; }
    // Copies a mask of any length.
    void copy(const void* mask, Bytes bytes) const {
        for (unsigned w = 0; w < process.words; ++w) word_[w] = 0;
        std::memcpy(word_, mask, min_of(bytes, Bytes{process.words} * sizeof(std::uint64_t)));
    }
    bool operator==(const Mask& other) const {
        for (unsigned w = 0; w < process.words; ++w)
            if (word_[w] != other[w]) return false;
        return true;
    }

private:
    std::uint64_t* word_;
};
// Defines a Mask whose words, which are not set yet, lie on the stack. Not in a loop.
#define NUMALLOC_MASK(name)                                                                         \
    Mask name(static_cast<std::uint64_t*>(__builtin_alloca(process.words * sizeof(std::uint64_t))))

// Return > 0 and 0 for success, as os::get_affinity() and os::set_affinity() do.
inline long get_affinity(int tid, Mask mask) { return os::get_affinity(tid, mask.data(), process.words); }
inline long set_affinity(int tid, Mask mask) { return os::set_affinity(tid, mask.data(), process.words); }

namespace detail {
// The last home of a thread whose record is gone: its last frees still need one.
extern NUMALLOC_THREAD_LOCAL std::uint16_t ended_on;
}  // namespace detail

// Makes the record of a running thread that was not announced: a raw clone's, or one of libc's own.
void adopt();

// ---- Masks: user_mask.cpp.

// Lets thread `tid` (0: the caller) run on every CPU of the cpuset.
bool allow_every_cpu(int tid);
inline Mask user_mask_of(ThreadRecord* record) { return Mask(record->user_mask()); }
void set_user_mask(ThreadRecord* record, const std::uint64_t* words);
inline void set_user_mask(ThreadRecord* record, Mask mask) { set_user_mask(record, mask.data()); }
// Gives the kernel the user's mask for thread `tid`, and that of a bound thread: without the CPUs of other places.
// Returns 0 or -errno.
long set_user_request(const ThreadRecord* record, int tid);
long set_bound_request(const ThreadRecord* record, int tid);
// Sets `mask` to the user's.
void user_request_of(const ThreadRecord* record, Mask mask);
// Sets `mask` to the one that holds now, the user's or the bound one.
void kernel_request_of(const ThreadRecord* record, Mask mask);
// Whether `mask` is the one that holds now.
bool is_kernel_request(const ThreadRecord* record, Mask mask);

// What the kernel's mask of a thread can be:
//   its bound mask   placement set it, while the thread is bound: the user's without the CPUs of other places
//   its user's mask  while it is not bound, and while it starts a child
//   another one      changed from outside (taskset, a cpuset, a raw system call): that change takes effect
bool is_bound_mask(const ThreadRecord* record, Mask mask);
bool is_user_mask(const ThreadRecord* record, Mask mask);
// Whether it is the one of these two that the thread should have now; whether it is one of the two.
bool is_expected_mask(const ThreadRecord* record, Mask kernel);
bool is_known_mask(const ThreadRecord* record, Mask kernel);
// Whether the place has all CPUs of the thread's user's mask. (CPUs that were offline at the start are in no place.)
bool lies_within(const ThreadRecord* record, PlaceId place);
// Whether the place of the thread lacks one of them.
inline bool is_narrowed(const ThreadRecord* record) { return !lies_within(record, record->place); }
// Whether `mine`, the caller's mask, is all that the cpuset allows.
bool is_whole(Mask mine);
// Gives the calling thread its user's mask in the kernel if it runs under ours. Returns whether it did. Takes no lock
// and changes no state, so it works between vfork and exec too. `record` may be nullptr.
bool widen_bound(const ThreadRecord* record);
inline bool widen(const ThreadRecord* record) { return record != nullptr && record->bound && widen_bound(record); }
// Places a running thread by the mask that its user has set, and that the kernel has.
void follow_user(ThreadRecord* record, Mask mask) NUMALLOC_REQUIRES(process.lock);
// Binds the caller again whose fork ended without the lock.
void bind_left_wide(ThreadRecord* self);
// Places a running thread anew if another process has set its mask, or CPUs went or came (the cpuset, hotplug). Costs
// four system calls for a whole mask, one for another that is as expected. `tid`: 0 for the caller.
void renew_user_mask(ThreadRecord* record, int tid) NUMALLOC_REQUIRES(process.lock);
// The same for another thread. One that has its user's mask for a moment, to start a child, keeps it.
void renew_if_foreign(ThreadRecord* record, int tid) NUMALLOC_REQUIRES(process.lock);

// The places whose CPUs the thread's user allows; the one that has all of them, or no_place; and all places.
PlaceSet places_of(const ThreadRecord* record);
PlaceId only_place_of(const ThreadRecord* record);
PlaceSet all_places();

// Returns the policy's choice for the thread with this number; no_place if no place is allowed. `runs_on`: where its
// memory already lies, or no_place. `vacated`: choose_place.h.
PlaceId choose(unsigned number, const PlaceSet& allowed, PlaceId runs_on, Vacated vacated = {})
    NUMALLOC_REQUIRES(process.lock);
PlaceId current_place();
// Counts the thread at its promised place; else at the policy's choice, or nowhere if no place is allowed; or nowhere
// yet if it is bound at its first use.
void place(ThreadRecord* record, Vacated vacated = {}) NUMALLOC_REQUIRES(process.lock);
// Counts a thread that is counted nowhere; no longer counts it.
void enter(ThreadRecord* record, PlaceId id) NUMALLOC_REQUIRES(process.lock);
void leave(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);  // bound implies a place
// Notes where a thread lives from now on. Returns whether its mask in the kernel must become `request` for that.
// `wide`: the mask is the user's now.
bool bind(ThreadRecord* record, bool wide, Mask request) NUMALLOC_REQUIRES(process.lock);
// The kernel refused that mask.
void was_refused(ThreadRecord* record, long result) NUMALLOC_REQUIRES(process.lock);
// For a running thread without a home that is about to get memory: binds it if it is its turn (first_use.cpp). Returns
// whether it has a home now.
bool bind_at_first_use(ThreadRecord* record, Bytes wanted);
// Sets how many slow paths come before its next try to be bound: 1; 16 for the initial thread; no try if keeps_mask.
void wait_for_first_use(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// Counts a thread that is bound now and was not.
void note_bound(const ThreadRecord* record, bool was_bound);
inline bool is_forking(const ThreadRecord* record) { return record->forking.load(std::memory_order_relaxed); }
// Whether the calling thread, whose record it is, may have its user's mask for a moment: to start a child or a thread.
inline bool may_be_wide(const ThreadRecord* own) {
    return own->holds != 0 || is_forking(own) || own->left_wide.load(std::memory_order_relaxed);
}
// Whether the caller is the thread of the record that it finds: between vfork and exec it is not.
bool is_own(const ThreadRecord* record);
// Binds a thread that ran alone until now.
void settle_runner(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// Binds the thread to another place, which its user's mask allows.
void move_to(ThreadRecord* record, PlaceId id) NUMALLOC_REQUIRES(process.lock);
// Sets the kernel's mask of thread `tid` to the record's. `wide`: the kernel's mask is now the user's.
void apply(ThreadRecord* record, int tid, bool wide) NUMALLOC_REQUIRES(process.lock);
// Where threads are not bound: notes the nodes on which the process may run, among which owners.cpp guesses.
void note_nodes_of_start();
// Owners, see owners.h. The place that was answered for a number, or no_place.
PlaceId answered_place(int owner) NUMALLOC_REQUIRES(process.lock);
// Numbers a new thread.
void number_thread(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// Undoes number_thread() if the thread could not be created.
void take_number_back(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);
// Notes that the thread has moved to another place.
void owner_was_moved(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock);

}  // namespace numalloc::placement

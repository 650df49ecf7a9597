// Which node each thread belongs to, and the affinity that keeps it there.
//
//   off      one node: nothing to do, nothing is read or set
//   follow   several nodes, but threads are not bound (binding=none, the static library, or affinity cannot be read):
//            memory comes from the node that the thread runs on
//   active   threads are bound to nodes: each to those CPUs of one node that are in its user's mask. The user's mask is
//            kept here, and the program sees it instead of ours. With binding=auto a thread is bound when it allocates
//            (first_use.cpp), otherwise when it is created.
//
// A thread whose user's mask lies within one node is bound by its user already. A process's only thread is not bound,
// but stays bound if the others end.
//
// Thread-safe unless stated otherwise; keeps errno; nothing here allocates from the heap.
#pragma once

#include <cstddef>

#include "base/bits.h"
#include "base/ids.h"
#include "base/thread_safety.h"
#include "os/affinity.h"
#include "os/fork_gate.h"
#include "placement/thread_record.h"

namespace numalloc::placement {

// Called once, single-threaded, after init_options() and os::init_topology(). `has_heap`: home_node() is called before
// a thread gets memory. Without that binding=auto binds threads when they are created.
void init(bool has_heap);

namespace detail {
extern NUMALLOC_THREAD_LOCAL ThreadRecord* current;
}

// The node from which the calling thread must allocate now. No system call on the usual path. Here a thread that was
// not announced (a raw clone, glibc's own helpers) gets its record and is bound as others are, and a change of affinity
// by a raw system call (libnuma's numa_run_on_node) takes effect. `wanted`: bytes that the thread wants to allocate.
NodeId home_node(Bytes wanted = 0);

// With several nodes home_node() may change from one call to the next: unbound threads migrate, and other threads may
// move bound ones. Then call it at each refill. Constant after init().
extern bool has_several_nodes;

// Whether threads are bound and their masks hidden, so that the interposed functions have work to do.
bool active();

// Since the start: how often a thread was bound; and threads that found no room when they first allocated.
std::uint64_t bound_threads();
std::uint64_t unbound_threads();

// ---- A thread's life.

// While it exists the calling thread is not bound at its first use: it starts a thread or a child, which would inherit
// the binding. Has no effect in a child between vfork and exec, which never runs its destructor.
class [[nodiscard]] FirstUseHold {
public:
    FirstUseHold();
    ~FirstUseHold();
    FirstUseHold(const FirstUseHold&) = delete;
    FirstUseHold& operator=(const FirstUseHold&) = delete;

private:
    ThreadRecord* record_;
};

// The creation of a thread by pthread_create. Makes the thread's record, and gives it back unless created() is called.
class ThreadStart {
public:
    // Chooses the thread's node, except with binding=auto. `attr_mask`: the affinity in the caller's attributes, or
    // nullptr.
    explicit ThreadStart(const os::CpuMask* attr_mask) : record_(begin(attr_mask)) {}
    ~ThreadStart() {
        if (record_ != nullptr && !created_) abandon();
    }
    ThreadStart(const ThreadStart&) = delete;
    ThreadStart& operator=(const ThreadStart&) = delete;

    // nullptr without memory.
    ThreadRecord* record() const { return record_; }
    // Whether the creator was not bound and is now: its heap must follow.
    bool moved_creator() const { return moved_creator_; }
    // Called if the thread was created. This or enter_thread(), whichever is first, writes *record()->handle_out: that
    // memory may be gone once pthread_create has returned or the user's function runs. `may_ask`: libc has created
    // it, and not as a detached thread, so that libc may be asked about the handle.
    void created(pthread_t handle, bool may_ask);

private:
    ThreadRecord* begin(const os::CpuMask* attr_mask);
    void abandon();
    bool is_in_child() const;

    const std::uint32_t fork_generation_ = os::fork_gate.generation();
    bool moved_creator_ = false;    // these two: begin() may set them
    std::uint64_t generation_ = 0;  // the record's: once the thread is created the record may be another's
    ThreadRecord* const record_;
    const FirstUseHold hold_;  // from after begin(), which may make the creator's record
    bool created_ = false;
};
// Called first by the new thread, with signals blocked unless there is a filter: binds it if its node has been chosen.
void enter_thread(ThreadRecord* record);
// For a new thread whose end calls thread_ended() in the last round of key destructors: heap_ended() keeps its record.
void keep_record_to_the_end();
// Called when the thread's heap has been returned. Ends the record, unless the thread keeps it to the end: so that its
// last destructors, and children that they start, still see the user's mask.
void heap_ended();
// Called last; also by threads without a record, and possibly twice.
void thread_ended();

// A record, and which of its threads is meant: records are reused.
struct RecordName {
    ThreadRecord* record;
    std::uint64_t generation;
};
// The record is nullptr if the caller has none.
RecordName record_of_caller();
// That thread has ended by a raw system call. Ends its record, unless it has been ended already.
void died_unnoticed(RecordName name);

// ---- Affinity as the user sees it. Results as of the system calls: bytes or 0, or -errno.

long get_affinity(int tid, std::size_t bytes, void* mask);
// Sets the affinity of thread `tid` (0: the caller's). Returns 0 or -errno.
using SetAffinity = long (*)(int tid, std::size_t bytes, const void* mask);
// *node: where the calling thread's memory comes from now, if the call changed its own affinity; otherwise no_node.
// `while_unbound` sets it where no thread is bound; else it is a system call.
long set_affinity(int tid, std::size_t bytes, const void* mask, NodeId* node, SetAffinity while_unbound);

// The same by handle. unknown_thread: placement does not know the thread or its ID, so the caller must use libc.
constexpr long unknown_thread = -16384;
long get_affinity(pthread_t thread, std::size_t bytes, void* mask);
// libc's pthread_setaffinity_np(), for a thread whose ID is not known yet.
using LibcSetAffinity = int (*)(pthread_t, std::size_t, const cpu_set_t*);
long set_affinity(pthread_t thread, std::size_t bytes, const void* mask, NodeId* node, LibcSetAffinity libc_set);

// Makes a call again that the kernel refused with EPERM, while thread `tid` (0: the caller) has its user's mask: the
// kernel grants SCHED_DEADLINE only to a thread that may use all CPUs. The thread keeps that mask if the call succeeds
// now. Returns the call's result, or -EPERM without the call if the thread is not bound.
long call_unbound(int tid, long (*call)(const void*), const void* argument);

// Makes a call that may install a filter, after which no mask can be set. All bound threads, and those that start with
// their creator's binding, have their users' masks meanwhile, and keep them if it does. (Not those of which created()
// may not ask.)
long call_with_users_masks(long (*call)(const void*), const void* argument);
// Called before the process's first filter: if the caller is the main thread, its number (psm_self) stays 0.
void note_main_thread();

// Gives the calling thread its user's mask while it exists, so that threads and processes that are started in that time
// inherit the mask. Takes no lock and changes no state between vfork and exec, so it works there too; elsewhere it
// keeps a mask that another process sets meanwhile.
class [[nodiscard]] AsTheUserSetIt {
public:
    AsTheUserSetIt();
    ~AsTheUserSetIt();
    AsTheUserSetIt(const AsTheUserSetIt&) = delete;
    AsTheUserSetIt& operator=(const AsTheUserSetIt&) = delete;

private:
    FirstUseHold hold_;
    bool widened_ = false;
};

// Binds a thread to the CPUs of one of the kernel's nodes. Returns 0, or ESRCH if the thread is not known, ENXIO if its
// user's affinity has no CPU of the node. If threads are not bound or the kernel refuses, places the caller's memory
// there instead; ENOTSUP for other threads.
int rehome_thread(pthread_t thread, unsigned os_node);

// ---- fork(): its handlers call these, one thread at a time. Other threads may go on starting, ending and changing
// their affinity: placement's lock passes the gate (os/lock.h), and the child makes anew what it guards.
// Widens the caller's mask, so that the kernel may place the child on any CPU that its user allows.
void fork_prepare();
void fork_parent();
// The child has one thread, which is unbound and follows its CPU. Takes no lock: a thread of the parent may have held
// placement's.
void fork_child() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;

}  // namespace numalloc::placement

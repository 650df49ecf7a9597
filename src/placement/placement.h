// Which node each thread belongs to, and the affinity that keeps it there.
//
//   off      one node: nothing to do, nothing is read or set
//   follow   several nodes, threads left alone (binding=none; or the kernel lets us bind nothing):
//            memory comes from the node under the thread
//   active   from the second thread on every thread is bound to one node: the CPUs of that node
//            that its user's mask has. The mask itself is kept here, and shown instead of ours.
//
// A thread whose own mask lies within one node is bound by its user; we only follow. A thread
// that runs alone (main, until the first pthread_create; a forked child likewise) is not bound.
//
// Thread-safe unless said otherwise; errno is kept; nothing here allocates from the heap.
#pragma once

#include <cstddef>

#include "base/bits.h"
#include "base/ids.h"
#include "base/thread_safety.h"
#include "os/affinity.h"
#include "placement/thread_record.h"

namespace numalloc::placement {

// Once, single-threaded, after init_options() and os::init_topology().
void init();

namespace detail {
extern NUMALLOC_THREAD_LOCAL ThreadRecord* current;
}

// The node from which the calling thread must allocate now. No system call on the usual path.
// A thread that nobody announced (a raw clone, glibc's own helpers) is taken in and bound here;
// one that was moved by a raw system call (libnuma's numa_run_on_node) is followed.
NodeId home_node();

// home_node() may answer something else the next time: several nodes. Then it is worth asking
// at each refill, because threads migrate (unbound ones) and others may move them (bound ones).
extern bool has_several_nodes;  // constant after init()
inline bool follows_cpu() { return has_several_nodes; }

// Threads are bound and their masks hidden: the interposed functions have work to do.
bool active();

// ---- A thread's life. pthread_create calls these in order.

// Memory for the new thread's record, its node chosen. `attr_mask`: the affinity in the
// caller's attributes, or nullptr. Binds the creator where it was not yet bound: then
// *creator_moved is its node and its heap must follow. nullptr without memory.
ThreadRecord* begin_thread(const os::CpuMask* attr_mask, NodeId* creator_moved);
// The creation failed.
void abandon_thread(ThreadRecord* record);
// The creation worked. `generation` as it was before. Either this or enter_thread() writes
// *record->handle_out, whichever is first: once pthread_create has returned, or the user's
// function runs, that memory may be gone.
void created_thread(ThreadRecord* record, std::uint64_t generation, pthread_t handle);
// The first thing the new thread does: it binds itself.
void enter_thread(ThreadRecord* record);
// The last; also for threads that never had a record, and a second time.
void thread_ended();

// ---- Affinity as the user sees it. Results like the system calls': bytes or 0, or -errno.

long get_affinity(int tid, std::size_t bytes, void* mask);
// *node: where the calling thread's memory comes from now, if it was the caller's own; no_node
// otherwise.
long set_affinity(int tid, std::size_t bytes, const void* mask, NodeId* node);

// The same by handle. unknown_thread: no thread of ours, ask libc.
constexpr long unknown_thread = -16384;
long get_affinity(pthread_t thread, std::size_t bytes, void* mask);
// `libc_set` is used for a thread that has not yet told its id.
long set_affinity(pthread_t thread, std::size_t bytes, const void* mask, NodeId* node,
                  int (*libc_set)(pthread_t, std::size_t, const cpu_set_t*));

// Before the process's first filter: if the caller is the main thread, its number (psm_self) stays 0.
void note_main_thread();

// Gives the calling thread its user's mask while it lives, so that whatever is started meanwhile
// inherits that. Takes no lock and changes no state: right between vfork and exec too.
class [[nodiscard]] AsTheUserSetIt {
public:
    AsTheUserSetIt();
    ~AsTheUserSetIt();
    // The thread keeps that mask, and so do the threads that it creates once nothing can be bound any more. Takes a
    // lock.
    void keep();
    AsTheUserSetIt(const AsTheUserSetIt&) = delete;
    AsTheUserSetIt& operator=(const AsTheUserSetIt&) = delete;

private:
    bool widened_ = false;
};

// Binds a thread to the CPUs of one of the kernel's nodes. 0, or ESRCH for a thread that is not known,
// ENXIO where its user's affinity has no CPU of the node, EPERM where the kernel refuses. Where threads
// are not bound, the caller's memory is placed there instead, and others are ENOTSUP.
int rehome_thread(pthread_t thread, unsigned os_node);

// ---- fork(): its handlers call these, while nobody else holds a lock.
void fork_prepare();  // widens the caller's mask: the kernel places the child anywhere it may run
void fork_parent();
// The child is alone, unbound, and follows its CPU. Without the lock: a handler of a signal may fork over one of higher
// rank.
void fork_child() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;

}  // namespace numalloc::placement

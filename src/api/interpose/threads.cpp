// Interposed: the creation of threads and their affinity. Only in the shared libraries; see numalloc_interposes_threads
// in placement.cpp.
//
//   pthread_create -> ThreadStart -> libc's -> ThreadStart::created
//                                       new thread: run_thread -> enter_thread -> the user's function
//                                                   the last round of key destructors -> thread_ended
//
// If nothing is bound (one node, binding=none), calls go on to libc or, for a mask, to the kernel.
#include <pthread.h>
#include <sched.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "api/export.h"
#include "api/interpose/library.h"
#include "api/interpose/next.h"
#include "base/atomic.h"
#include "os/exit_hook.h"
#include "os/program_calls.h"
#include "os/signal.h"
#include "placement/placement.h"

namespace numalloc::api {

namespace {

using placement::ThreadRecord;

constinit std::atomic<bool> default_attr_was_set{false};

// What a thread's attributes set.
struct Attributes {
    bool is_detached = true;
    bool has_affinity = false;
    os::CpuMask affinity;

    // libc returns an affinity of all ones for "none".
    void read(const pthread_attr_t* attr) {
        auto* const set = reinterpret_cast<cpu_set_t*>(affinity.data());
        has_affinity = pthread_attr_getaffinity_np(attr, sizeof affinity, set) == 0 && affinity.count() < os::max_cpus;
        int state = PTHREAD_CREATE_DETACHED;
        pthread_attr_getdetachstate(attr, &state);
        is_detached = state == PTHREAD_CREATE_DETACHED;
    }

    // `attr`: as given to pthread_create().
    void read_for_new_thread(const pthread_attr_t* attr) {
        if (attr != nullptr) return read(attr);
        is_detached = default_attr_was_set.load(std::memory_order_relaxed);
        pthread_attr_t defaults;
        if (!is_detached || pthread_getattr_default_np(&defaults) != 0) return;
        read(&defaults);
        pthread_attr_destroy(&defaults);
    }
};

// In the last round, so that the program's own destructors still run on the thread's node.
using PlaceExit = os::ExitHook<PTHREAD_DESTRUCTOR_ITERATIONS, placement::thread_ended>;

// A signal's handler that ends the thread (pthread_exit) would leave placement's lock to nobody, or the thread's room.
// (After a filter signals are not blocked.)
void enter(ThreadRecord* record) {
    const os::NoSignals no_signals;
    placement::enter_thread(record);
    if (PlaceExit::set()) placement::keep_record_to_the_end();
}

void* run_thread(void* argument) {
    auto* record = static_cast<ThreadRecord*>(argument);
    const auto start = reinterpret_cast<void* (*)(void*)>(record->start);
    void* user_argument = record->argument;
    enter(record);
    return start(user_argument);
}

int run_c11_thread(void* argument) {
    auto* record = static_cast<ThreadRecord*>(argument);
    const auto start = reinterpret_cast<int (*)(void*)>(record->start);
    void* user_argument = record->argument;
    enter(record);
    return start(user_argument);
}

// Writes what is there: another creator may use the same memory.
void meet_fault(char& byte) {
    char known = load_relaxed(byte);
    compare_exchange(byte, known, known);
}

// `create(handle, record)` starts the thread with one of the functions above, by libc if `is_libcs`. It returns 0 for
// success.
template <class Create>
int create_thread(pthread_t* thread, const pthread_attr_t* attr, void (*start)(), void* argument, bool* ours,
                  bool is_libcs, Create create) {
    PlaceExit::make();
    // A handler of SIGSEGV that makes this memory writable (a collector's write barrier) takes locks of the program's,
    // so it runs now and not under placement's.
    meet_fault(*reinterpret_cast<char*>(thread));
    Attributes attributes;
    attributes.read_for_new_thread(attr);
    placement::ThreadStart begun(attributes.has_affinity ? &attributes.affinity : nullptr);
    ThreadRecord* const record = begun.record();
    *ours = record != nullptr;
    if (!*ours) return 0;
    if (begun.moved_creator()) thread_moved();
    record->handle_out = thread;
    record->start = start;
    record->argument = argument;
    pthread_t handle{};
    if (const int error = create(&handle, record); error != 0) return error;
    begun.created(handle, is_libcs && !attributes.is_detached);
    // New memory may have been interleaved while the process had one thread. That ends with the second thread.
    if (begun.moved_creator()) thread_moved();
    return 0;
}

long set_and_follow(int tid, std::size_t bytes, const void* mask, placement::SetAffinity while_unbound) {
    NodeId node;
    const long result = placement::set_affinity(tid, bytes, mask, &node, while_unbound);
    if (node != no_node) thread_moved();
    return result;
}

int fail(long result) {
    errno = static_cast<int>(-result);
    return -1;
}

}  // namespace

}  // namespace numalloc::api

using namespace numalloc;
using namespace numalloc::api;

extern "C" NUMALLOC_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*start)(void*),
                                              void* argument) noexcept {
    const auto next = NUMALLOC_NEXT(pthread_create);
    const placement::FirstUseHold hold;  // the new thread would inherit the binding
    wake_library();
    bool ours = false;
    if (placement::active()) {
        const int error = create_thread(
            thread, attr, reinterpret_cast<void (*)()>(start), argument, &ours,
            NUMALLOC_OTHERS(pthread_create) == nullptr,
            [&](pthread_t* handle, ThreadRecord* record) { return next(handle, attr, run_thread, record); });
        if (ours) return error;
    }
    return next(thread, attr, start, argument);
}

extern "C" NUMALLOC_EXPORT int thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
    const auto next = NUMALLOC_NEXT(thrd_create);
    const placement::FirstUseHold hold;  // the new thread would inherit the binding
    wake_library();
    bool ours = false;
    if (placement::active()) {
        const int error = create_thread(
            thread, nullptr, reinterpret_cast<void (*)()>(start), argument, &ours,
            NUMALLOC_OTHERS(thrd_create) == nullptr,
            [&](pthread_t* handle, ThreadRecord* record) { return next(handle, run_c11_thread, record); });
        if (ours) return error;
    }
    return next(thread, start, argument);
}

extern "C" NUMALLOC_EXPORT int pthread_setattr_default_np(const pthread_attr_t* attr) noexcept {
    default_attr_was_set.store(true, std::memory_order_relaxed);
    return NUMALLOC_NEXT(pthread_setattr_default_np)(attr);
}

extern "C" NUMALLOC_EXPORT int sched_getaffinity(pid_t tid, std::size_t bytes, cpu_set_t* mask) noexcept {
    if (const auto others = NUMALLOC_OTHERS(sched_getaffinity); others != nullptr && !placement::active())
        return others(tid, bytes, mask);
    const long got = placement::get_affinity(tid, bytes, mask);
    if (got < 0) return fail(got);
    std::memset(reinterpret_cast<char*>(mask) + got, 0, bytes - static_cast<std::size_t>(got));
    return 0;
}

extern "C" NUMALLOC_EXPORT int sched_setaffinity(pid_t tid, std::size_t bytes, const cpu_set_t* mask) noexcept {
    const auto others_set = [](int id, std::size_t length, const void* wanted) -> long {
        const auto others = NUMALLOC_OTHERS(sched_setaffinity);
        if (others == nullptr) return os::set_affinity(id, length, wanted);
        return others(id, length, static_cast<const cpu_set_t*>(wanted)) == 0 ? 0 : -errno;
    };
    const long result = set_and_follow(tid, bytes, mask, others_set);
    return result < 0 ? fail(result) : 0;
}

// The system calls of these names.
long os::get_affinity_for_program(const ProgramCall& c) {
    return placement::get_affinity(static_cast<int>(c.argument[0]), static_cast<unsigned>(c.argument[1]),
                                   reinterpret_cast<void*>(c.argument[2]));
}

long os::set_affinity_for_program(const ProgramCall& c) {
    return set_and_follow(static_cast<int>(c.argument[0]), static_cast<unsigned>(c.argument[1]),
                          reinterpret_cast<const void*>(c.argument[2]), os::set_affinity);
}

long os::set_attributes_for_program(const ProgramCall& c) {
    const long result = make(c);
    if (result != -EPERM) return result;
    const auto again = [](const void* call) { return make(*static_cast<const ProgramCall*>(call)); };
    return placement::call_unbound(static_cast<int>(c.argument[0]), again, &c);
}

// A function of glibc 2.41 and later. Programs for older ones use syscall().
struct sched_attr;
extern "C" NUMALLOC_EXPORT int sched_setattr(pid_t tid, struct sched_attr* attributes, unsigned flags) noexcept {
    return static_cast<int>(numalloc_program_sched_setattr(tid, attributes, flags));
}

extern "C" NUMALLOC_EXPORT int pthread_getaffinity_np(pthread_t thread, std::size_t bytes, cpu_set_t* mask) noexcept {
    const long got = placement::get_affinity(thread, bytes, mask);
    if (got == placement::unknown_thread) return NUMALLOC_NEXT(pthread_getaffinity_np)(thread, bytes, mask);
    if (got < 0) return static_cast<int>(-got);
    std::memset(reinterpret_cast<char*>(mask) + got, 0, bytes - static_cast<std::size_t>(got));
    return 0;
}

extern "C" NUMALLOC_EXPORT int pthread_setaffinity_np(pthread_t thread, std::size_t bytes,
                                                      const cpu_set_t* mask) noexcept {
    const auto next = NUMALLOC_NEXT(pthread_setaffinity_np);
    NodeId node;
    const long result = placement::set_affinity(thread, bytes, mask, &node, next);
    if (result == placement::unknown_thread) return next(thread, bytes, mask);
    if (node != no_node) thread_moved();
    return static_cast<int>(-result);
}

// The attributes of a running thread, with the user's affinity.
extern "C" NUMALLOC_EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t* attr) noexcept {
    const int error = NUMALLOC_NEXT(pthread_getattr_np)(thread, attr);
    if (error != 0 || !placement::active()) return error;
    os::CpuMask mask;
    const long got = placement::get_affinity(thread, sizeof mask, mask.data());
    if (got <= 0) return 0;
    const int set_error = pthread_attr_setaffinity_np(attr, static_cast<std::size_t>(got),
                                                      reinterpret_cast<const cpu_set_t*>(mask.data()));
    if (set_error != 0) pthread_attr_destroy(attr);
    return set_error;
}

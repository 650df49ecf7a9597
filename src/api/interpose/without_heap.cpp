// The library of libnumalloc-binding.so: it binds threads, and another allocator serves memory. It does nothing before
// the first pthread_create, so a process with one thread is left alone.
#include <atomic>

#include "api/interpose/fork_handlers.h"
#include "api/interpose/library.h"
#include "options/options.h"
#include "os/brief_wait.h"
#include "os/lock.h"
#include "os/topology.h"
#include "placement/placement.h"

namespace numalloc::api {

namespace {

constinit std::atomic<bool> awake{false};
constinit os::Lock<os::LockRank::initialise> initialise_lock;

void initialise() NUMALLOC_REQUIRES(initialise_lock) {
    init_options();
    os::fork_gate.start();
    os::init_topology();
    placement::init(false);
    awake.store(true, std::memory_order_release);
}

bool wake_once() {
    os::Guard guard(initialise_lock);
    if (awake.load(std::memory_order_relaxed)) return false;
    initialise();
    return true;
}

}  // namespace

// All threads share one lock mark: without a heap they have no place for their own.
void fork_prepare() {
    os::fork_gate.close();
    placement::fork_prepare();
}
bool fork_prepare_briefly() {
    std::uint32_t sleeps = os::many_sleeps;
    if (!os::ForkGate::waits() || !os::fork_gate.is_process() || !os::fork_gate.try_close(sleeps)) return false;
    placement::fork_prepare();
    return true;
}
void fork_parent() {
    placement::fork_parent();
    os::fork_gate.open();
}
void fork_child() {
    os::fork_gate.become_child();
    os::fork_gate.open();
    placement::fork_child();
}

void wake_library() {
    if (awake.load(std::memory_order_acquire)) return;
    // Outside the lock: libc may call the malloc of any allocator, which may start a thread.
    if (wake_once()) register_fork_handlers();
}

const bool looking_up_starts_malloc = false;

void complete_start() { wake_library(); }

// The other allocator takes memory where the thread runs, or where it chooses to.
void thread_moved() {}

// This library has no statistics page.
void before_exec() {}
void after_exec() {}

}  // namespace numalloc::api

#include "os/thread_life.h"

#include <linux/futex.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "base/bits.h"
#include "os/libc_call.h"
#include "os/syscall.h"

// Defined in the shared libraries.
extern "C" __attribute__((weak)) const numalloc::os::MutexCalls numalloc_mutex_calls;

namespace numalloc::os {

namespace {

constexpr MutexCalls plain{pthread_mutex_init, pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_unlock};

const MutexCalls& calls() { return &numalloc_mutex_calls != nullptr ? numalloc_mutex_calls : plain; }

// libc links the robust mutexes that a thread has locked, the newest first, with a head in the thread's descriptor.
// Both members of a link point to the __next of a neighbour (in __next the lowest bit is a flag):
//
//   before.__next == &link.__next == after.__prev
using Link = __pthread_list_t;

const Link* link_of(const Link* next_of_neighbour) {
    return reinterpret_cast<const Link*>((address_of(next_of_neighbour) & ~Address{1}) - offsetof(Link, __next));
}

bool kernel_finds(const std::uint32_t* word, std::uint32_t value) {
    const timespec at_once{};
    const long result = call(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &at_once, 0, 0);
    return result == 0 || result == -ETIMEDOUT || result == -EINTR;
}

// Whether `pointer` is readable and points to `target`. The kernel reads it, because it may lie in no memory.
bool points_to(Link* const* pointer, const void* target) {
    const auto* const word = reinterpret_cast<const std::uint32_t*>(pointer);
    return kernel_finds(word, static_cast<std::uint32_t>(address_of(target))) &&
           kernel_finds(word + 1, static_cast<std::uint32_t>(address_of(target) >> 32));
}

// Whether the neighbours of a link are what libc takes them for when it unlinks it.
bool can_be_unlinked(const Link& link) {
    if (link.__prev == nullptr) return true;  // the mutex is not robust, and in no list
    const Link* const before = link_of(link.__prev);
    const Link* const after = link_of(link.__next);
    if (before == after) return true;  // both are the head: the thread holds no other robust mutex
    return points_to(&before->__next, &link.__next) && points_to(&after->__prev, &link.__next);
}

}  // namespace

void ThreadLife::begin() {
    // The caller holds a lock, and a library that replaces these functions may allocate.
    const LibcCall calling;
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    // ENOTSUP if the kernel has no robust lists.
    if (calls().init(&mutex_, &robust) != 0) calls().init(&mutex_, nullptr);
    pthread_mutexattr_destroy(&robust);
    calls().lock(&mutex_);
    stays_locked_.store(false, std::memory_order_relaxed);
}

void ThreadLife::end() {
    if (can_be_unlinked(mutex_.__data.__list)) calls().unlock(&mutex_);
    else stays_locked_.store(true, std::memory_order_relaxed);
}

bool ThreadLife::has_ended() {
    const int owner = calls().trylock(&mutex_);
    if (owner == EOWNERDEAD) {
        const LibcCall calling;
        pthread_mutex_consistent(&mutex_);
    } else if (owner != 0) return false;
    calls().unlock(&mutex_);
    // Read last: what the owner wrote before its death is visible now.
    return owner == EOWNERDEAD && !stays_locked_.load(std::memory_order_relaxed);
}

}  // namespace numalloc::os

// Runs code at the end of a thread, as the destructor of a pthread key. A raw exit system call skips it.
//
// libc calls the destructors of all keys in up to four rounds, as long as they set their keys again. Those of the
// program run among ours: they use malloc, and expect to run on the thread's node. So a hook lets some rounds pass. The
// key's value is the number of calls that are left.
//
// Each libc of a process (dlmopen(), LD_AUDIT) numbers its keys by itself, and all store the values of their first 32
// keys in the same array of the thread. A library that uses another libc would read our value with its own first key.
// So a hook's key is one of the last of these 32, which is seldom used. Beyond them, setting a key allocates.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace numalloc::os {

// Calls end() in the thread at the destructor's call number `calls`.
template <std::uintptr_t calls, void (*end)()>
class ExitHook {
public:
    // Makes the key. Thread-safe; calls after the first do nothing.
    static void make() {
        if (key_plus_one_.load(std::memory_order_acquire) != 0) return;
        pthread_key_t key = 0;
        if (!make_late_key(&key)) return;
        std::uint64_t none = 0;
        if (!key_plus_one_.compare_exchange_strong(none, std::uint64_t{key} + 1, std::memory_order_release))
            pthread_key_delete(key);
    }
    // Sets the hook for the calling thread. Returns false if there is no key, or no memory for its value.
    static bool set() { return key_plus_one_.load(std::memory_order_acquire) != 0 && set_left(calls); }

private:
    static constexpr pthread_key_t shared_values = 32;

    // Makes keys up to the last one below shared_values, and deletes all others.
    static bool make_late_key(pthread_key_t* key) {
        pthread_key_t made[shared_values];
        unsigned count = 0;
        while (count < shared_values && pthread_key_create(&made[count], on_thread_exit) == 0)
            if (made[count++] >= shared_values - 1) break;
        if (count == 0) return false;
        unsigned kept = count - 1;
        if (kept != 0 && made[kept] >= shared_values) --kept;
        *key = made[kept];
        for (unsigned i = 0; i < count; ++i)
            if (i != kept) pthread_key_delete(made[i]);
        return true;
    }
    static bool set_left(std::uintptr_t left) {
        const auto key = static_cast<pthread_key_t>(key_plus_one_.load(std::memory_order_relaxed) - 1);
        return pthread_setspecific(key, reinterpret_cast<void*>(left)) == 0;
    }
    static void on_thread_exit(void* value) {
        const auto left = reinterpret_cast<std::uintptr_t>(value);
        if (left == 1 || !set_left(left - 1)) end();
    }

    static constinit inline std::atomic<std::uint64_t> key_plus_one_{0};
};

}  // namespace numalloc::os

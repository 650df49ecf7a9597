// Says when most of a node's threads have ended, so that what they left in rings should return to the bags, and free
// memory to the kernel. The threads that go on may never come to a slow path, where housekeeping would see to it.
//
// That is when a third of the threads is left, and again when a third of those is. A program that starts threads again
// and again would fetch everything again. So after a call that was due there is a pause, in which only fewer threads
// than at that call are due. Each pause is twice as long as the last one, unless four pauses have passed since it
// began:
//
//   threads  1 . . 9 . . . . . 3 . 1 . . 9 . . . . . 3 . 1     the second team ends in the pause
//   due                        x   x
//
// What a team leaves that ends in a pause stays until other threads end or come to a slow path, and so does what
// threads leave that end beside a fork (deferred.h).
//
// Thread-safe, and without order: threads that end together may find it due twice, or once less.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bits.h"

namespace numalloc {

namespace policy::ended_threads {

constexpr std::uint32_t left_part = 3;
// Milliseconds. A loop of teams has a due call at 0, .1, .3, .7 s and so on, in the end every 3.2 s.
constexpr std::uint32_t first_pause = 100;
constexpr std::uint32_t longest_pause = 32 * first_pause;
constexpr std::uint32_t pauses_of_rest = 4;

}  // namespace policy::ended_threads

class EndedThreads {
public:
    // `threads`: how many the node has now.
    void on_start(std::uint32_t threads) {
        if (threads > most_.load(std::memory_order_relaxed)) most_.store(threads, std::memory_order_relaxed);
    }
    // In the child of a fork, whose memory is shared with the parent: threads that it does not have have not ended.
    void leave_behind(std::uint32_t kept) { most_.store(kept, std::memory_order_relaxed); }
    bool many(std::uint32_t threads) const {
        return threads <= most_.load(std::memory_order_relaxed) / policy::ended_threads::left_part;
    }
    // Call it if many(threads). `now`: milliseconds.
    bool are_due(std::uint32_t threads, std::uint32_t now) {
        using namespace policy::ended_threads;
        const std::uint32_t pause = pause_.load(std::memory_order_relaxed);
        const std::uint32_t since = now - paused_at_.load(std::memory_order_relaxed);
        if (since < pause) {
            if (threads >= left_.load(std::memory_order_relaxed)) return false;
        } else {
            const bool rested = pause == 0 || since >= pauses_of_rest * pause;
            pause_.store(rested ? first_pause : min_of(2 * pause, longest_pause), std::memory_order_relaxed);
            paused_at_.store(now, std::memory_order_relaxed);
        }
        left_.store(threads, std::memory_order_relaxed);
        most_.store(threads, std::memory_order_relaxed);
        return true;
    }

private:
    std::atomic<std::uint32_t> most_{0};       // threads since the last call that was due
    std::atomic<std::uint32_t> left_{0};       // threads at that call
    std::atomic<std::uint32_t> pause_{0};      // milliseconds; 0: none yet
    std::atomic<std::uint32_t> paused_at_{0};  // its begin, in milliseconds
};

}  // namespace numalloc

// SPDX-License-Identifier: GPL-2.0-or-later
// CPUs in user mode take turns, in the order in which they asked: what is counted does not depend on the host's
// scheduler then, and only whoever has the turn touches the counters.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace scope {

class Turns {
public:
    // False if it did not come: QEMU may be waiting for this very CPU to stop, and whoever has the turn with it.
    bool take(unsigned cpu) {
        std::unique_lock lock(mutex_);
        if (owner_ == NOBODY && waiting_.empty()) {
            owner_ = cpu;
            return true;
        }
        while (changed_.size() <= cpu) changed_.emplace_back();
        waiting_.push_back(cpu);
        length_.store(waiting_.size(), std::memory_order_relaxed);
        if (changed_[cpu].wait_for(lock, PATIENCE, [&] { return owner_ == cpu; })) return true;
        std::erase(waiting_, cpu);
        length_.store(waiting_.size(), std::memory_order_relaxed);
        return false;
    }

    void give() {
        const std::lock_guard lock(mutex_);
        owner_ = NOBODY;
        if (waiting_.empty()) return;
        owner_ = waiting_.front();
        waiting_.pop_front();
        length_.store(waiting_.size(), std::memory_order_relaxed);
        changed_[owner_].notify_one();
    }

    bool wanted() const { return length_.load(std::memory_order_relaxed) > 0; }

private:
    static constexpr unsigned NOBODY = ~0u;
    static constexpr std::chrono::milliseconds PATIENCE{300};

    std::mutex mutex_;
    std::deque<std::condition_variable> changed_;  // of each CPU
    std::deque<unsigned> waiting_;
    std::atomic<size_t> length_ = 0;
    unsigned owner_ = NOBODY;
};

}  // namespace scope

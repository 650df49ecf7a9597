// Waits for what another thread does soon without waking anybody. Spins first, because that thread may be about to do
// it, and then sleeps, because it may be preempted, even by this thread: 50 us to 1 ms at a time, at most `sleeps`
// times, which counts down. The result is false if that is not enough.
#pragma once

#include <atomic>
#include <cstdint>

namespace numalloc::os {

constexpr std::uint32_t few_sleeps = 16;
// For what would be lost otherwise: on a busy machine that thread may not run for tens of milliseconds.
constexpr std::uint32_t many_sleeps = 256;
constexpr std::uint32_t without_end = ~std::uint32_t{0};

// Until the word is at most `most`.
bool wait_for_fall(const std::atomic<std::uint32_t>& word, std::uint32_t most, std::uint32_t& sleeps);
// Until the word is not `value`.
bool wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint32_t& sleeps);

}  // namespace numalloc::os

// A deterministic clock: it advances by a millisecond every four calls.
#include <atomic>
#include <cstdint>

namespace {

constexpr std::uint32_t looks_a_millisecond = 4;
constinit std::atomic<std::uint32_t> looks{1'000'000};

}  // namespace

// The linker's name for what the sources call os::milliseconds().
extern "C" std::uint32_t __wrap__ZN8numalloc2os12millisecondsEv() {
    return looks.fetch_add(1, std::memory_order_relaxed) / looks_a_millisecond;
}

// Signals that the library handles: one that the user names in an option, and those of its own writes.
#pragma once

#include <cstdint>

namespace numalloc::os {

// Installs the handler if the signal's action is the default. It runs on the thread's alternative stack if it has one.
void handle_signal(int number, void (*handler)(int));

// While it exists, a write of the calling thread to a pipe without a reader, or beyond the limit on file sizes, fails
// with an error and raises no signal: SIGPIPE and SIGXFSZ are blocked and consumed.
class WritesAreHarmless {
public:
    WritesAreHarmless();
    ~WritesAreHarmless();
    WritesAreHarmless(const WritesAreHarmless&) = delete;
    WritesAreHarmless& operator=(const WritesAreHarmless&) = delete;

private:
    std::uint64_t mask_before_ = 0;
    std::uint64_t pending_before_ = 0;
};

}  // namespace numalloc::os

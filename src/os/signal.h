// Signals that the library takes for itself because its user named one.
#pragma once

#include <cstdint>

namespace numalloc::os {

// Unless the program has a handler already. On the thread's alternative stack where it has one.
void handle_signal(int number, void (*handler)(int));

// While it lives, a write of the calling thread to a pipe without a reader, or beyond the limit of a file's size, fails
// with an error: its SIGPIPE or SIGXFSZ is taken away.
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

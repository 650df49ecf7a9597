// Signals that the library handles or holds back: one that the user names in an option, those of its own writes, and
// all for a moment.
#pragma once

#include <cstdint>

namespace numalloc::os {

// Installs the handler if the signal's action is the default. It runs on the thread's alternative stack if it has one.
void handle_signal(int number, void (*handler)(int));

// All signals but those of faults: a fault whose signal is blocked ends the process, and a program's handler may cure
// it (a collector's write barrier on memory that the library writes to).
extern const std::uint64_t not_of_faults;

// While it exists, signals of the set do not interrupt the calling thread. not_of_faults: asynchronous cancellation
// does not end it either. Does nothing after a filter (filter.h).
class NoSignals {
public:
    explicit NoSignals(std::uint64_t set = not_of_faults);
    ~NoSignals();
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

    bool are_blocked() const { return blocked_; }

private:
    std::uint64_t mask_before_ = 0;
    bool blocked_;
};

// While it exists, a write of the calling thread to a pipe without a reader, or beyond the limit on file sizes, fails
// with an error and raises no signal: SIGPIPE and SIGXFSZ are blocked and consumed.
class WritesAreHarmless {
public:
    WritesAreHarmless();
    ~WritesAreHarmless();
    WritesAreHarmless(const WritesAreHarmless&) = delete;
    WritesAreHarmless& operator=(const WritesAreHarmless&) = delete;

private:
    NoSignals blocked_;
    std::uint64_t pending_before_ = 0;
};

}  // namespace numalloc::os

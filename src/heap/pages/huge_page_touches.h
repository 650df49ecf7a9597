// Times first touches of a node's huge pages, to find out whether the machine provides them slowly (dear) just now.
//
// Only the first touch of a huge page that is about to be handed out shows the cost. A huge page taken for the test
// alone would be one that this CPU freed a moment ago, and cheap. One huge page in policy::huge_pages::a_sample is due
// to be timed. A few slow touches may be coincidence, so they are weighed against the fast ones (a CUSUM test): each
// slow one raises the excess by policy::huge_pages::slow_counts, each fast one lowers it by 1. As long as there is
// some, the next huge page is due, too. From policy::huge_pages::dear_from on, huge pages are dear for
// policy::huge_pages::dear_for. The first one timed after that decides alone.
//
// Invariants:
//   the next huge page is due if and only if untouched_ - timed_at_ >= policy::huge_pages::a_sample
//   0 <= excess_ < policy::huge_pages::dear_from between two touches
//   excess_ == policy::huge_pages::dear_from - policy::huge_pages::slow_counts when huge pages have become dear
//
// Thread-safe: each word is atomic, and none publishes other data. Threads that race may time one huge page more or
// less.
#pragma once

#include <atomic>

#include "base/bits.h"
#include "os/clock.h"

namespace numalloc {

namespace policy::huge_pages {

// The first touch of one huge page in 16 is timed for big objects, and of each for small ones if at least 512 bytes of
// its beginning are handed out at once: those pages are touched in any case.
constexpr std::uint32_t a_sample = 16;
constexpr Bytes timed_from = 512;
// A touch is slow if it takes much longer than clearing the page: a host had to find the memory. Four in a row make
// huge pages dear; fewer prove nothing, because by the coarse clock a single one may look slow. If fast ones lie
// between, more than one in six must be slow: a slow one costs 6 to 14 ms, a fast one saves .5 ms of page faults.
constexpr std::uint32_t slow_counts = 5;
constexpr std::uint32_t dear_from = 4 * slow_counts;
// In a run that is handed out, at most four huge pages are touched: its owner may never use them.
constexpr std::uint32_t touched_at_once = 4;
// No huge pages are requested for 2,000 ms.
constexpr std::uint32_t dear_for = 2000;

}  // namespace policy::huge_pages

class HugePageTouches {
public:
    // Touches a huge page, and returns whether that was slow (os/huge_page_cost.h). The first `own` bytes of the page
    // are the caller's.
    using Touch = bool (*)(void* huge_page, Bytes own);
    enum class Cost { cheap, unsure, dear };

    // Call it before any other function. nullptr: huge pages are never timed, and never dear.
    void start(Touch touch_is_dear) { touch_is_dear_ = touch_is_dear; }
    bool is_on() const { return touch_is_dear_ != nullptr; }

    // Counts huge pages that are about to be handed out, untouched.
    void count(std::uint32_t huge_pages) { untouched_.fetch_add(huge_pages, std::memory_order_relaxed); }

    // Whether a huge page is due to be timed. If so, the caller times one now: no other is due until as many were
    // counted again.
    bool take_sample() {
        const std::uint32_t untouched = untouched_.load(std::memory_order_relaxed);
        if (untouched - timed_at_.load(std::memory_order_relaxed) < policy::huge_pages::a_sample) return false;
        timed_at_.store(untouched, std::memory_order_relaxed);
        return true;
    }

    // Times the first touch of a huge page. `unsure`: enough were slow that the next one is due. `dear`: were_dear()
    // holds from now on.
    Cost time(void* huge_page, Bytes own) {
        const bool slow = touch_is_dear_(huge_page, own);
        const std::uint32_t before = excess_.load(std::memory_order_relaxed);
        const std::uint32_t excess = slow ? before + policy::huge_pages::slow_counts : max_of(before, 1U) - 1;
        if (excess == 0) {
            excess_.store(0, std::memory_order_relaxed);
            return Cost::cheap;
        }
        timed_at_.store(untouched_.load(std::memory_order_relaxed) - policy::huge_pages::a_sample,
                        std::memory_order_relaxed);
        if (excess < policy::huge_pages::dear_from) {
            excess_.store(excess, std::memory_order_relaxed);
            return Cost::unsure;
        }
        excess_.store(policy::huge_pages::dear_from - policy::huge_pages::slow_counts, std::memory_order_relaxed);
        dear_until_.store(max_of(os::milliseconds() + policy::huge_pages::dear_for, 1U), std::memory_order_relaxed);
        return Cost::dear;
    }

    // Whether huge pages were dear within the last policy::huge_pages::dear_for.
    bool were_dear() const {
        const std::uint32_t until = dear_until_.load(std::memory_order_relaxed);
        return until != 0 && until - os::milliseconds() <= policy::huge_pages::dear_for;
    }

private:
    Touch touch_is_dear_ = nullptr;  // constant after start()
    // Huge pages counted; not 0 at first, so that the first one is due.
    std::atomic<std::uint32_t> untouched_{policy::huge_pages::a_sample};
    // The value of untouched_ at the last sample, or policy::huge_pages::a_sample less if the next one is due.
    std::atomic<std::uint32_t> timed_at_{0};
    std::atomic<std::uint32_t> excess_{0};      // of slow touches over fast ones
    std::atomic<std::uint32_t> dear_until_{0};  // milliseconds; 0: huge pages were never dear
};

}  // namespace numalloc

// How much free but still resident memory a node may keep for quick reuse.
//
// There is no background thread: a program that frees everything and then sleeps never calls the allocator again.
// Memory that is freed and not replaced is therefore purged before purge_delay, once more than a share of the memory in
// use was freed. Memory that a program frees and replaces waits for purge_delay.
//
//   due = max(min(dirty - allowed, fall - short),     bags to purge early, 0 if negative
//             dirty - max(allowed, 2 * in_use))
//     fall    bags freed, minus twice the bags taken since, minus the bags purged
//     short   in_use / 2; in_use for purge_delay after a request missed pages that were purged early
//
// A program that replaces blocks at random has no fall, however much in_use swings. A program that frees everything has
// one as soon as it has freed a third, and in the end everything beyond `allowed` is purged. A program that frees two
// blocks for each block that it takes (a reduction by pairs) has no fall: it keeps twice what it uses.
//
// An array that grows by doubling fits into none of the blocks that it leaves, and their sum is as long as the array.
// So a long run that was mostly clean when it was taken goes at once, and counts neither as freed nor in `most`, unless
// the last one of its kind was taken again within purge_delay.
//
// A program that frees everything and allocates the same again must not pay page faults in every round. Memory that was
// purged early is *regretted* if requests of the kind that was freed need pages again within purge_delay, and if the
// loop is fast. From then on as much more may stay:
//
//   allowed = max(floor + in_use / 4, min(kept, most + slack - in_use, enough))
//     kept    bags regretted, minus the bags that then stayed unused for purge_delay
//     most    peak of the bags in use, less those unused for purge_delay: up to it kept memory does not raise the peak
//             of the resident set
//     slack   part of kept that was for big objects, at most most / 2: some holes are too small for the next
//             big object, which would have to be faulted in
//     enough  max(proven, 16 MiB, threads * largest, (most - in_use) / 4)
//     proven  bags regretted since most last grew by 1/16
//     largest longest run freed within purge_delay
//
// policy::dirty has the numbers.
//
// A program whose phases grow keeps a quarter of what it frees, because any phase may be the last one before it stops
// calling the allocator. Fast rounds of the same size soon keep everything, even once they are slow.
//
// The kind of a run is its size class or, for a big object, its length in steps of a quarter of a doubling. A program
// that moves on to other sizes therefore regrets nothing. Nor does a loop that takes less than slow_pace: what it kept
// would stay when the program waits after the last round. A leaky bucket, which page faults fill, measures the pace:
//
//   faulted  clean bags taken, less those that leak; at most 2 * widest, or what leaks in purge_delay at slow_pace
//   gap      bags purged early and not replaced by clean ones that were taken, less those missing for purge_delay
//   widest   peak of gap in this window of purge_delay and the one before
//   leak     slow_pace a millisecond, times widest / (widest + stays): a loop also takes what stays, without a fault
//   stays    min(kept, max(proven, 16 MiB))
//   fast     faulted - widest, if positive: at most as much of what is taken now is regretted
//
// A round alone fills the bucket to widest and no further. The round is fast if the one before has not leaked out yet.
// A large peak that was taken and freed makes no later loop fast: widest remembers it until the bucket has leaked.
//
// Not thread-safe: the page heap's lock guards it. Counts are in bags, times in milliseconds.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "heap/space/size_class.h"

namespace numalloc {

namespace policy::dirty {

// Free memory that may always stay, so that the next requests fault nothing in: 4 MiB, and 1/4 of the memory in use.
constexpr Bytes floor = 4 * MiB;
constexpr std::uint64_t in_use_part = 4;
// A taken bag offsets two freed bags, because the use of a program that replaces blocks at random swings.
constexpr std::uint64_t replaced_for_taken = 2;
// A fall of less than half of the memory still in use purges nothing. A program that sleeps then holds up to half as
// much again as it uses.
constexpr std::uint64_t short_fall_part = 2;
// Free memory beyond twice the memory in use is purged even without a fall, because a program that frees two blocks for
// each that it takes has none. With a lower limit programs that replace large blocks fault more.
constexpr std::uint64_t idle_part = 2;
// Up to 16 MiB of regretted memory may stay without proof, or 1/4 of the fall of the memory in use from its peak.
constexpr Bytes proven_floor = 16 * MiB;
constexpr std::uint64_t proven_part = 4;
// Runs of 32 MiB and more are long. glibc returns each freed block that is longer (M_MMAP_THRESHOLD).
constexpr Bytes long_run = 32 * MiB;
// Beyond the peak of the memory in use, half as much may stay where holes are too small for the next big object.
// Without it such objects would be faulted in.
constexpr std::uint64_t slack_part = 2;
// Proven memory stays proven until the peak of the memory in use has grown by 1/16: the program is in a new phase then.
constexpr std::uint64_t growth_part = 16;
// Bags a millisecond. A MiB of page faults took 0.3 ms, with huge pages 0.05 (EPYC in a virtual machine): at this pace
// 11 or 2 % of the time between rounds. If the program waits for a part of it, they take more of its work.
constexpr std::uint64_t slow_pace = bags_in(384 * KiB);

}  // namespace policy::dirty

class DirtyLimit {
public:
    static constexpr std::uint32_t floor = bags_in(policy::dirty::floor);
    static constexpr std::uint32_t long_run = bags_in(policy::dirty::long_run);

    void start(std::int32_t purge_delay) { period_ = static_cast<std::uint32_t>(max_of(purge_delay, 0)); }

    // The kind of a run of `bags` bags: its class `c`, or its length if `c` is no_class (a big object).
    static unsigned kind_of(ClassId c, std::uint32_t bags) {
        if (c != no_class) return c.value;
        const unsigned e = log2_floor(bags);
        const unsigned quarter = e >= 2 ? (bags >> (e - 2)) & 3 : (bags << (2 - e)) & 3;
        return class_count + 4 * e + quarter;
    }

    // Returns how many of `dirty` free bags to purge, whatever their age. `threads`: how many the heap serves.
    std::uint32_t due(std::uint32_t dirty, std::uint64_t in_use, std::uint32_t threads, std::uint32_t now) const {
        const std::uint64_t allowed = now_allowed(in_use, threads);
        const bool comes_back = needed_again_ && now - needed_again_at_ <= period_;
        const std::uint64_t short_fall = comes_back ? in_use : in_use / policy::dirty::short_fall_part;
        const std::uint64_t most_idle = max_of(allowed, policy::dirty::idle_part * in_use);
        const std::uint64_t idle = dirty > most_idle ? dirty - most_idle : 0;
        const std::uint64_t fallen =
            dirty > allowed && fall_ > short_fall ? min_of(dirty - allowed, fall_ - short_fall) : 0;
        return static_cast<std::uint32_t>(max_of(idle, fallen));
    }

    // A run became free. Returns whether it goes at once. `fresh`: it is long, and was mostly clean when it was taken.
    [[nodiscard]] bool on_give(unsigned kind, std::uint32_t bags, bool fresh, std::uint32_t now) {
        Freed& freed = freed_[kind];
        if (now - freed.at > period_) {
            if (freed.bags > 0) freed.comes_back = false;
            freed.bags = 0;
        }
        const bool at_once = fresh && !freed.comes_back;
        if (at_once) {
            lower_most(bags);
        } else {
            fall_ += bags;
            if (bags >= largest_ || now - largest_at_ > period_) {
                largest_ = bags;
                largest_at_ = now;
            }
        }
        freed.bags += bags;
        freed.at = now;
        return at_once;
    }

    // Memory was purged before purge_delay, because it was due.
    void on_early_purge(std::uint32_t bags, std::uint32_t now) {
        if (now - purged_at_ > period_) gap_ = least_gap_ = widest_of_window_ = 0;
        if (now - window_at_ > period_) {
            gap_ -= least_gap_;
            widest_ = widest_of_window_;
            least_gap_ = widest_of_window_ = gap_;
            window_at_ = now;
        }
        gap_ += bags;
        widest_of_window_ = max_of(widest_of_window_, gap_);
        widest_ = max_of(widest_, gap_);
        purged_at_ = now;
        lower_fall(bags);
    }

    // Memory was purged after it had stayed unused for purge_delay.
    void on_late_purge(std::uint32_t bags) {
        kept_ -= min_of<std::uint64_t>(kept_, bags);
        kept_big_ -= min_of<std::uint64_t>(kept_big_, bags);
        lower_most(bags);
        lower_fall(bags);
    }

    // A run was taken, and `clean` of its bags will fault. Returns how many of them are regretted.
    std::uint32_t on_take(unsigned kind, std::uint32_t bags, std::uint32_t clean, std::uint64_t in_use,
                          std::uint32_t now) {
        lower_fall(policy::dirty::replaced_for_taken * std::uint64_t{bags});
        most_ = max_of(most_, in_use);
        if (most_ > level_ + level_ / policy::dirty::growth_part) {
            level_ = most_;
            proven_ = 0;
        }
        Freed& freed = freed_[kind];
        const bool is_long = bags >= long_run;
        if (is_long && freed.bags > 0) freed.comes_back = now - freed.at <= period_;
        std::uint32_t regretted = 0;
        if (clean > 0) {
            const std::uint32_t fast = fast_of(clean, now);
            if (gap_ > 0 && now - purged_at_ <= period_) {
                needed_again_ = true;
                needed_again_at_ = now;
                const std::uint32_t back = min_of(clean, gap_);
                gap_ -= back;
                least_gap_ = min_of(least_gap_, gap_);
                if (now - freed.at <= period_) regretted = regret(kind, min_of(min_of(back, freed.bags), fast));
            }
        }
        freed.bags -= min_of(freed.bags, bags);
        if (is_long && freed.bags < long_run) freed.bags = 0;  // the rest of a longer one
        return regretted;
    }

private:
    std::uint64_t now_allowed(std::uint64_t in_use, std::uint32_t threads) const {
        const std::uint64_t slack = min_of(kept_big_, most_ / policy::dirty::slack_part);
        const std::uint64_t unused = most_ > in_use ? most_ - in_use : 0;
        const std::uint64_t a_block_each = std::uint64_t{threads} * largest_;
        const std::uint64_t enough = max_of(proven(), max_of(a_block_each, unused / policy::dirty::proven_part));
        const std::uint64_t kept = min_of(kept_, min_of(unused + slack, enough));
        return max_of(floor + in_use / policy::dirty::in_use_part, kept);
    }
    std::uint64_t proven() const { return max_of<std::uint64_t>(proven_, bags_in(policy::dirty::proven_floor)); }
    // `clean` bags fault. Returns how many of them are fast.
    std::uint32_t fast_of(std::uint32_t clean, std::uint32_t now) {
        const std::uint64_t leaks = policy::dirty::slow_pace * (now - faulted_at_);
        const std::uint64_t leaked = widest_ == 0 ? leaks : leaks * widest_ / (widest_ + min_of(kept_, proven()));
        const std::uint64_t most = max_of(2 * std::uint64_t{widest_}, policy::dirty::slow_pace * period_);
        faulted_ = min_of(faulted_ - min_of(faulted_, leaked) + clean, most);
        faulted_at_ = now;
        return static_cast<std::uint32_t>(
            min_of<std::uint64_t>(clean, faulted_ - min_of<std::uint64_t>(faulted_, widest_)));
    }
    std::uint32_t regret(unsigned kind, std::uint32_t bags) {
        const std::uint64_t enough = most_ + most_ / policy::dirty::slack_part;
        kept_ = min_of(kept_ + bags, enough);
        proven_ = min_of(proven_ + bags, enough);
        if (kind >= class_count) kept_big_ = min_of(kept_big_ + bags, enough);
        return bags;
    }
    void lower_most(std::uint64_t bags) {
        most_ -= min_of(most_, bags);
        level_ = min_of(level_, most_);
    }
    void lower_fall(std::uint64_t bags) { fall_ -= min_of(fall_, bags); }

    struct Freed {
        std::uint32_t bags;  // freed of this kind and not taken again
        std::uint32_t at;
        bool comes_back;  // the last one was taken again within purge_delay
    };

    std::uint32_t period_ = 0;
    std::uint64_t fall_ = 0;
    std::uint32_t largest_ = 0;  // longest run freed within purge_delay
    std::uint32_t largest_at_ = 0;
    std::uint64_t kept_ = 0;
    std::uint64_t kept_big_ = 0;
    std::uint64_t proven_ = 0;
    std::uint64_t most_ = 0;
    std::uint64_t level_ = 0;  // of most_, when proven_ was last reset
    std::uint32_t purged_at_ = 0;
    std::uint32_t gap_ = 0;
    std::uint32_t widest_ = 0;
    std::uint32_t window_at_ = 0;         // when the present window began
    std::uint32_t widest_of_window_ = 0;  // peak of gap_ in it
    std::uint32_t least_gap_ = 0;         // least gap_ in it
    std::uint64_t faulted_ = 0;
    std::uint32_t faulted_at_ = 0;
    std::uint32_t needed_again_at_ = 0;
    bool needed_again_ = false;
    Freed freed_[class_count + 4 * 32] = {};
};

}  // namespace numalloc

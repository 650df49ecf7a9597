// How much free but still resident memory a node may keep for quick reuse.
//
// There is no background thread: a program that frees everything and then sleeps never calls the allocator again.
// Memory that is freed and not replaced is therefore purged before purge_delay, once more than a share of the memory in
// use was freed. Memory that a program frees and replaces waits for purge_delay.
//
//   due = max(min(dirty - allowed, fall - short),     bags to purge early, 0 if negative
//             dirty - max(allowed, 2 * in_use))
//     fall    bags freed, minus twice the bags taken since, minus the bags purged
//     short   in_use / 2; in_use for purge_delay after a request faulted pages in soon after an early purge
//
// A program that replaces blocks at random has no fall, however much in_use swings. A program that frees everything has
// one as soon as it has freed a third, and in the end everything beyond `allowed` is purged. A program that frees two
// blocks for each block that it takes (a reduction by pairs) has no fall: it keeps twice what it uses.
//
// A program that frees everything and allocates the same again must not pay page faults in every round. Memory that was
// purged early is *regretted* if requests of the kind that was freed need pages again within purge_delay. From then on
// as much more may stay:
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
// calling the allocator. Rounds of the same size keep everything.
//
// The kind of a run is its size class or, for a big object, its length in steps of a quarter of a doubling. A program
// that moves on to other sizes therefore regrets nothing. A slow loop (each round writes all its memory, or the machine
// is busy) counts like a fast one.
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
// Beyond the peak of the memory in use, half as much may stay where holes are too small for the next big object.
// Without it such objects would be faulted in.
constexpr std::uint64_t slack_part = 2;
// Proven memory stays proven until the peak of the memory in use has grown by 1/16: the program is in a new phase then.
constexpr std::uint64_t growth_part = 16;

}  // namespace policy::dirty

class DirtyLimit {
public:
    static constexpr std::uint32_t floor = bags_in(policy::dirty::floor);

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

    // A run became free.
    void on_give(unsigned kind, std::uint32_t bags, std::uint32_t now) {
        fall_ += bags;
        if (bags >= largest_ || now - largest_at_ > period_) {
            largest_ = bags;
            largest_at_ = now;
        }
        Freed& freed = freed_[kind];
        if (now - freed.at > period_) freed.bags = 0;
        freed.bags += bags;
        freed.at = now;
    }

    // Memory was purged before purge_delay, because it was due.
    void on_early_purge(std::uint32_t bags, std::uint32_t now) {
        if (now - purged_at_ > period_) purged_ = 0;
        purged_ += bags;
        purged_at_ = now;
        lower_fall(bags);
    }

    // Memory was purged after it had stayed unused for purge_delay.
    void on_late_purge(std::uint32_t bags) {
        kept_ -= min_of<std::uint64_t>(kept_, bags);
        kept_big_ -= min_of<std::uint64_t>(kept_big_, bags);
        most_ -= min_of<std::uint64_t>(most_, bags);
        level_ = min_of(level_, most_);
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
        const bool gone_early = purged_ > 0 && now - purged_at_ <= period_;
        if (gone_early && clean > 0) {
            needed_again_ = true;
            needed_again_at_ = now;
        }
        Freed& freed = freed_[kind];
        std::uint32_t regretted = 0;
        if (gone_early && now - freed.at <= period_) {
            regretted = min_of(clean, min_of(freed.bags, purged_));
            const std::uint64_t enough = most_ + most_ / policy::dirty::slack_part;
            kept_ = min_of(kept_ + regretted, enough);
            proven_ = min_of(proven_ + regretted, enough);
            if (kind >= class_count) kept_big_ = min_of(kept_big_ + regretted, enough);
            purged_ -= regretted;
        }
        freed.bags -= min_of(freed.bags, bags);
        return regretted;
    }

private:
    std::uint64_t now_allowed(std::uint64_t in_use, std::uint32_t threads) const {
        const std::uint64_t slack = min_of(kept_big_, most_ / policy::dirty::slack_part);
        const std::uint64_t unused = most_ > in_use ? most_ - in_use : 0;
        const std::uint64_t a_block_each = std::uint64_t{threads} * largest_;
        const std::uint64_t proven = max_of<std::uint64_t>(proven_, bags_in(policy::dirty::proven_floor));
        const std::uint64_t enough = max_of(proven, max_of(a_block_each, unused / policy::dirty::proven_part));
        const std::uint64_t kept = min_of(kept_, min_of(unused + slack, enough));
        return max_of(floor + in_use / policy::dirty::in_use_part, kept);
    }
    void lower_fall(std::uint64_t bags) { fall_ -= min_of(fall_, bags); }

    struct Freed {
        std::uint32_t bags;  // freed of this kind and not taken again
        std::uint32_t at;
    };

    std::uint32_t period_ = 0;
    std::uint64_t fall_ = 0;
    std::uint32_t largest_ = 0;  // longest run freed within purge_delay
    std::uint32_t largest_at_ = 0;
    std::uint64_t kept_ = 0;
    std::uint64_t kept_big_ = 0;
    std::uint64_t proven_ = 0;
    std::uint64_t most_ = 0;
    std::uint64_t level_ = 0;   // of most_, when proven_ was last reset
    std::uint32_t purged_ = 0;  // purged early and not regretted
    std::uint32_t purged_at_ = 0;
    std::uint32_t needed_again_at_ = 0;
    bool needed_again_ = false;
    Freed freed_[class_count + 4 * 32] = {};
};

}  // namespace numalloc

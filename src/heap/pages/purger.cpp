#include "heap/pages/purger.h"

#include <initializer_list>

#include "base/tracepoints.h"
#include "os/brief_wait.h"
#include "os/clock.h"
#include "os/mapping.h"

namespace numalloc {

// Cuts `bags` bags off the end of a dirty piece, or all of a shorter one: the end would be allocated last. Rounds up to
// whole huge pages, except at the beginning of the piece. Where a page is longer than a bag, takes whole pages whose
// other bags are free too. Returns no bags if there is no whole page.
Purger::Purging Purger::cut_end(BagIndex piece, std::uint32_t bags) {
    const std::uint32_t length = free_.piece(piece).length;
    const BagIndex end = piece + length;
    if (end == top_) free_top_page();
    BagIndex first = end - min_of(bags, length);
    BagIndex to = end;
    const BagIndex run = free_.run_of(piece);
    const BagIndex run_end = run + free_.length(run);
    BagIndex near = piece;  // as in cut_range()
    if (may_be_huge(end - 1)) {
        if (first > piece) first = max_of(aligned_down(first, huge_bags), piece);
        // The first touch of a bag made its whole huge page resident, so the clean bags beside the piece go, too.
        if (first == piece && piece > run && free_.piece(free_.piece_before(piece)).kind == Bag::Piece::clean) {
            near = free_.piece_before(piece);
            first = max_of(aligned_down(piece, huge_bags), near);
        }
        if (end < run_end && free_.piece(end).kind == Bag::Piece::clean)
            to = min_of(free_.aligned(end, huge_bags), end + free_.piece(end).length);
    }
    if (page_bags() > 1) {
        first = page_start(first) >= run ? page_start(first) : page_end(first);
        to = page_end(to) <= run_end ? page_end(to) : page_start(to);
        // The piece has no whole page, and clean bags alone need not be purged.
        if (max_of(first, piece) >= min_of(to, end)) return {};
        while (near > first) near = free_.piece_before(near);
    }
    return cut_range(run, {first, to}, near);
}

// `near`: a piece of the run at or before `part`.
Purger::Purging Purger::cut_range(BagIndex run, BagRange part, BagIndex near) {
    const std::uint32_t dirty = free_.cut(run, part.first, part.end - part.first, near);
    return begin(part, dirty);
}

// Takes the clean bags beside the run that are in its first or last huge page, too, as cut_end() does.
Purger::Purging Purger::set_aside(BagIndex run, std::uint32_t bags) {
    BagRange part{run, run + bags};
    bag(run).state = BagState::inside;
    if (part.end == top_) free_top_page();
    const bool alone = page_bags() == 1;  // else a longer page may be used in part
    if (const BagIndex left = free_.run_before(run); alone && may_be_huge(run) && left != none) {
        const BagIndex piece = free_.last_piece(left);
        if (free_.piece(piece).kind == Bag::Piece::clean) part.first = max_of(aligned_down(run, huge_bags), piece);
        if (part.first < run) free_.cut(left, part.first, run - part.first, piece);
    }
    if (const BagIndex right = part.end; alone && may_be_huge(right - 1) && free_.begins_at(right, top_)) {
        if (free_.piece(right).kind == Bag::Piece::clean)
            part.end = min_of(free_.aligned(right, huge_bags), right + free_.piece(right).length);
        if (part.end > right) free_.cut({right, right}, part.end - right);
    }
    Purging range = begin(part, bags);
    range.at_once = true;
    return range;
}

// `part` was cut out of the free runs, or has just been freed.
Purger::Purging Purger::begin(BagRange part, std::uint32_t dirty) {
    Purging range{part.first, part.end - part.first, dirty};
    range.breaks_first = may_be_huge(part.first) && aligned_down(part.first, huge_bags) != part.first &&
                         free_.run_before(part.first) == none;
    range.breaks_last = part.end != top_ && may_be_huge(part.end - 1) &&
                        aligned_down(part.end, huge_bags) != part.end && !free_.begins_at(part.end, top_);
    write_used_run(range.first, range.bags, BagState::small);
    begun_.store(begun_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    return range;
}

bool Purger::purged_more_than(std::uint32_t ranges, std::uint32_t& sleeps) {
    if (sleeps == 0) return false;
    --sleeps;
    const bool none = begun_.load(std::memory_order_seq_cst) == ranges;
    if (none || waited_in_vain_.load(std::memory_order_relaxed) == ranges + 1) return purged_ranges() != ranges;
    if (os::wait_for_change(ended_, ranges, sleeps)) return true;
    // A purge that a child has inherited unfinished never ends: the next request does not wait for it, too.
    waited_in_vain_.store(ranges + 1, std::memory_order_relaxed);
    return false;
}

Purger::Purging Purger::pick(std::uint32_t most, std::uint32_t now) {
    if (rule_.pauses(now)) return {};
    for (BagIndex oldest; (oldest = free_.oldest()) != none;) {
        const PurgeRule::Due due =
            rule_.due(free_.piece(oldest), free_.dirty(), bags_in_use(), threads_.load(std::memory_order_relaxed), now);
        if (due.bags == 0) return {};
        Purging range = cut_end(oldest, min_of(due.bags, most));
        range.rested = due.rested;
        if (range.bags > 0) return range;
        free_.set_stuck(oldest);
    }
    return {};
}

// Breaks the huge pages at the ends of the range if others use parts of them.
void Purger::break_huge_pages(const Purging& range) {
    if (range.breaks_first) no_more_huge(range.first);
    if (range.breaks_last) no_more_huge(range.first + (range.bags - 1));
}

Purger::Discarded Purger::discard(const Purging& range) {
    const bool gone = os::discard(region_.address(range.first), Bytes{range.bags} << bag_shift);
    // What the program locked and freed without munlock() is unlocked only by a new mapping.
    if (!gone && os::locks_new_mappings()) return Discarded::refused;
    const bool moved = region_.count(BagMark::moved, range.first, range.bags) != 0;
    if (!gone || moved) {
        const os::Replaced renewed = renew(range.first, range.bags);
        if (renewed == os::Replaced::lost) return Discarded::lost;
        if (renewed == os::Replaced::refused && !gone) return Discarded::refused;
    }
    trace::purge(region_.address(range.first), Bytes{range.bags} << bag_shift, range.rested);
    break_huge_pages(range);
    return Discarded::done;
}

bool Purger::return_pages(void* p, Bytes bytes, bool rested) {
    if (!os::discard(p, bytes)) return false;
    trace::purge(p, bytes, rested);
    for (const BagIndex b : {region_.bag_of(p), region_.bag_of(static_cast<char*>(p) + bytes - 1)})
        if (may_be_huge(b)) no_more_huge(b);
    os::Guard guard(lock_);
    use_.returned_bytes += bytes;
    return true;
}

// A lost range stays allocated forever.
void Purger::finish(const Purging& range, Discarded how, std::uint32_t now) {
    const bool refused = how == Discarded::refused;
    rule_.on_answer(refused, now);
    ended_.store(ended_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    if (how == Discarded::lost) return;
    bag(range.first).state = BagState::inside;
    free_.add(range.first, range.bags, refused ? Bag::Piece::stuck : Bag::Piece::clean, now, top_);
    if (refused) return;
    use_.purged_bags += range.dirty;
    if (!range.at_once) rule_.on_purge(range.dirty, range.rested, now);
}

std::uint32_t Purger::purge_picked(Purging range, std::uint32_t most) {
    std::uint32_t went = 0;
    bool trim = false;
    while (range.bags > 0) {
        const Discarded how = discard(range);
        if (how == Discarded::done) went += range.dirty;
        os::Guard guard(lock_);
        const std::uint32_t now = os::milliseconds();
        finish(range, how, now);
        trim = top_is_clean();
        most -= min_of(most, range.dirty);
        range = most > 0 ? pick(most, now) : Purging{};
    }
    if (trim) trim_top();
    return went;
}

// The free part of the run's first or last huge page if others use the rest of it, else empty.
BagRange Purger::shared_huge_page(BagIndex run, bool at_end) const {
    const BagIndex end = run + free_.length(run);
    const BagIndex from = max_of(run, region_.huge_from());
    if (from >= end || (at_end && end == top_)) return {};
    // If pages are longer than bags, others may use a part of the page, too.
    const BagRange part = at_end ? BagRange{max_of(page_end(from), aligned_down(end, huge_bags)), page_start(end)}
                                 : BagRange{page_end(from), min_of(free_.aligned(from, huge_bags), page_start(end))};
    return part.first < part.end ? part : BagRange{};
}

// Purges the clean bags at the ends of free runs, which may be resident because others use the rest of their huge page.
// Makes up to two short system calls a free run, so only purge(true) calls it.
void Purger::purge_beside_used() {
    for (BagIndex run = region_.first_bag();;) {
        BagIndex next;
        for (const bool at_end : {false, true}) {
            Purging range;
            os::StayInside until_finished;
            {
                os::Guard guard(lock_);
                if (!at_end) run = free_.next_run(run);
                if (run == none) return;
                // Another thread may have taken the run between the two ends.
                if (at_end && !free_.begins_at(run, top_)) break;
                next = run + free_.length(run);
                const BagRange part = shared_huge_page(run, at_end);
                if (part.first == part.end) continue;
                BagIndex near = at_end ? free_.last_piece(run) : run;
                while (near > part.first) near = free_.piece_before(near);
                range = cut_range(run, part, near);
                until_finished.begin();
            }
            const Discarded how = discard(range);
            os::Guard guard(lock_);
            finish(range, how, os::milliseconds());
            if (how == Discarded::refused) return;
        }
        run = next;
    }
}

// The kernel may accept now what it has refused: memory was locked (mlockall), or the process had used up its mappings.
void Purger::retry_stuck() {
    {
        os::Guard guard(lock_);
        if (free_.stuck() == 0) return;
    }
    if (os::locks_new_mappings()) return;
    for (BagIndex run = region_.first_bag();;) {
        os::Guard guard(lock_);
        if (free_.stuck() == 0) return;
        run = free_.next_run(run);
        if (run == none) return;
        free_.retry_stuck(run, os::milliseconds());
        run = run + free_.length(run);
    }
}

Bytes Purger::purge(bool all) {
    constexpr std::uint32_t most = PurgeRule::most_after(0);
    if (all) retry_stuck();
    Purging range;
    std::uint64_t left;
    {
        os::Guard guard(lock_);
        left = all ? free_.dirty() : 0;
        if (!all) range = pick(most, os::milliseconds());
    }
    if (!all) return Bytes{purge_picked(range, most)} << bag_shift;
    std::uint64_t went = 0;
    // Bounded by `left`: what other threads free from now on waits for a later call.
    while (left > 0) {
        os::StayInside until_finished;  // in a fork's child nobody would make the range free again
        {
            os::Guard guard(lock_);
            const BagIndex oldest = free_.oldest();
            if (oldest == none) break;
            range = cut_end(oldest, min_of(free_.piece(oldest).length, bags_in(policy::purge::all_at_once)));
            if (range.bags == 0) {
                free_.set_stuck(oldest);
                continue;
            }
            until_finished.begin();
        }
        const Discarded how = discard(range);
        if (how == Discarded::done) went += range.dirty;
        left -= min_of<std::uint64_t>(left, range.dirty);
        os::Guard guard(lock_);
        finish(range, how, os::milliseconds());
    }
    trim_top();
    if (options_.huge_pages) purge_beside_used();
    return Bytes{went} << bag_shift;
}

}  // namespace numalloc

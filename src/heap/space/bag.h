// What is known of a bag, 32 bytes at the bag's index in its node's table. A run (several bags
// in a row that belong together) is described by the entry of its first bag; a free run also
// marks its last bag, so that a neighbour can coalesce with it in O(1).
//
//            state     run        the rest
//   free     1         length     links of the tree and of the first piece               (free)
//   big      2         length     who allocated it, how it is spread over nodes                  (big)
//   small    3         length     objects of the class                                   (small)
//   bound    4, 5      length     a bag of objects, or a big object, of a bound heap     (bound)
//   inside   0         distance back to the first bag, for the last bag of free and big runs and
//                      for all but the first of runs with objects
//
// Only the first bag of a run that is in use says big, small or bound: whatever becomes free says
// inside before it says free.
//
// A free run is a row of pieces: bags that became free at about the same time, or that are clean. The first bag of
// a piece says how long it is, the last one where it begins. Both hold without a word of memory more:
//
//   run      | piece          | piece     | piece |
//   entry     L R O N P .. B   O N P .. B  O N P B     L R  tree links of the run    O N  queue of dirty pieces
//                                                      P    length, kind, age        B    distance back (in L's place)
//
// A piece of one bag that begins its run has no B: whoever looks back at it meets the run's first bag.
//
// Invariants of a small bag, under its shard's lock:
//   freed objects <= here <= carved <= objects    the rest of those here are in use
//   freed objects < here                          unless it is the bag being carved: an empty bag goes back to
//                                                 the page heap at once
//   carved - here == objects away                 free objects in no list: the page that they begin on was returned
//                                                 to the system (heap/central/free_pages.cpp)
#pragma once

#include "base/atomic.h"
#include "base/bits.h"
#include "base/ids.h"
#include "heap/space/link.h"

namespace numalloc {

enum class BagState : std::uint8_t { inside = 0, free, big, small, bound_small, bound_big };

class BoundHeap;

// A free one; see heap/space/freed.h for the mark.
struct Object {
    Link next;
    std::uint64_t mark;
};

// The first entry of a table is of the table's own bag: nobody's. Zero, so that zero pages name none.
constexpr BagIndex no_bag{};
static_assert(no_bag.value == 0);

struct Bag {
    std::uint32_t run = 0;
    BagState state = BagState::inside;
    std::uint8_t class_id = 0;  // in use: the class of the objects; free: see run_tree.h
    union {
        std::uint16_t taken = 0;  // bound: objects in use
                                  // big: the node that its pages were moved to, plus one; 0 for its own;
                                  // page_heap.h has the number that says: over several
                                  // free: see run_tree.h
        std::uint16_t away;       // small, of each bag of the run: a bit for each 4 KiB in which objects away begin
    };

    // Of a free piece. Dirty: may hold other than zeros. Kept: dirty too, but the kernel would not have it.
    enum class Piece : std::uint32_t { clean, dirty, kept };
    struct Free {
        BagIndex left, right;   // of a run's first bag: treap, run_tree.h. Of a piece's last: left is the distance back
        BagIndex older, newer;  // queue of dirty pieces, by the time they became free
        std::uint32_t length : 30;  // of the piece
        Piece kind : 2;
        std::uint32_t since;  // of dirty ones: when they became free; milliseconds, wraps after 49 days
    };
    struct Small {
        std::uint64_t freed;      // the freed objects, and whose the bag is: heap/central/free_list.h
        BagIndex next, previous;  // bags of the shard that have objects to give
        std::uint16_t carved;     // objects that have ever been handed out
        std::int16_t here;        // of these, all that are not away: n, or ~n if some are; see here_of()
        static constexpr std::uint16_t never = 0xFFFF;
        std::uint16_t
            looked_at;   // freed objects that stayed when its free pages were last returned; never: others since
        bool listed;     // in the list above
        bool being_cut;  // a refill or malloc_trim() takes freed objects without the lock
    };
    struct Bound {
        BoundHeap* heap;
        BagNumber next, previous;  // in one of the heap's lists
        std::uint16_t free;        // the object freed last, in granules from the bag's start
        std::uint16_t carved;
    };
    struct Big {
        static constexpr std::int32_t in_quarantine = -1;
        std::int32_t thread;   // the kernel's number of the thread that allocated it; 0: not known;
                               // in_quarantine: freed, see heap/process/big_quarantine.h
        std::uint32_t stripe;  // spread by weights: bags' pages a unit of weight has, else 0
        std::uint32_t cycle;   // and units after which the nodes come again
    };
    union {
        Free free;
        Small small;
        Bound bound;
        Big big;
    };
    constexpr Bag() : free{} {}
};
static_assert(sizeof(Bag) == 32);

// Of a small bag: how many carved objects are not away. The word is below 0 if some are away, so that a free, which
// compares it with what is free then, takes the slow path. Written under the shard's lock.
inline bool has_away(const Bag& bag) { return load_relaxed(bag.small.here) < 0; }
inline std::uint32_t here_of(const Bag& bag) {
    const std::int32_t word = load_acquire(bag.small.here);
    return static_cast<std::uint32_t>(word < 0 ? ~word : word);
}
inline void set_here(Bag& bag, std::uint32_t n) {
    store_release(bag.small.here, static_cast<std::int16_t>(n == bag.small.carved ? n : ~n));
}
// Of `more` carved objects, too.
inline void add_here(Bag& bag, std::uint32_t more) {
    const auto n = static_cast<std::int32_t>(more);
    store_relaxed(bag.small.here, static_cast<std::int16_t>(bag.small.here + (has_away(bag) ? -n : n)));
}
constexpr unsigned away_shift = 12;  // one bit of Bag::away is 4 KiB

// Four more bits a bag, in words of 64 bags each, one beside the other.
enum class BagMark : unsigned {
    dirty,        // in use: might hold other than zeros when it was taken
    moved,        // lies in a mapping that came from elsewhere, with its own policy and advice
    moved_first,  // such a mapping begins here
    normal,       // advised against huge pages, see heap/pages/huge_pages.cpp
};
constexpr unsigned bag_marks = 4;
constexpr Bytes bag_marks_bytes(std::uint64_t bags) { return divide_up(bags, 64) * bag_marks * sizeof(std::uint64_t); }

}  // namespace numalloc

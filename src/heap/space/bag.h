// The bag table of a node: 32 bytes for each bag, at the bag's index. The entry of its first bag describes a run
// (several bags in a row that belong together). The last bag stores the distance back, so that a neighbour can merge
// with a free run in O(1).
//
//            state     run        the rest
//   free     1         length     links of the tree and of the first piece               (free)
//   big      2         length     the allocating thread, how it is spread over nodes     (big)
//   small    3         length     objects of the class                                   (small)
//   bound    4, 5      length     a bag of objects, or a big object, of a bound heap     (bound)
//   inside   0         distance back to the first bag, for the last bag of free and big runs and
//                      for all but the first of runs with objects
//
// Only the first bag of a run in use has the state big, small or bound. A run being freed is `inside`,
// then `free`, and `small` while it is purged.
//
// A free run is a row of pieces: bags that became free at about the same time, or that are clean. The first bag of a
// piece stores its length, the last one the distance to the first. Neither needs extra memory:
//
//   run      | piece          | piece     | piece |
//   entry     L R O N P .. B   O N P .. B  O N P B     L R  tree links of the run    O N  queue of dirty pieces
//                                                      P    length, kind, age        B    distance back (in L's place)
//
// A piece of one bag that begins its run has no B: a reader that looks back at it finds the run's first bag.
//
// Invariants of a small bag, under its shard's lock:
//   freed objects <= here <= carved <= objects    here - freed objects of them are in use
//   freed objects < here                          except in the bag being carved: an empty bag returns to
//                                                 the page heap at once
//   carved - here == objects away                 free objects in no list: the page that they begin on, or above
//                                                 32 KiB any of theirs, was returned to the system
//                                                 (heap/central/free_pages.h)
#pragma once

#include "base/atomic.h"
#include "base/bits.h"
#include "base/ids.h"
#include "heap/space/link.h"

namespace numalloc {

enum class BagState : std::uint8_t { inside = 0, free, big, small, bound_small, bound_big };

class BoundHeap;

// A free object; heap/space/mark.h explains the mark.
struct Object {
    Link next;
    std::uint64_t mark;
};

// Bag 0 holds metadata and is in no run. So the links in zeroed pages lead nowhere.
constexpr BagIndex no_bag{};
static_assert(no_bag.value == 0);

struct Bag {
    std::uint32_t run = 0;
    BagState state = BagState::inside;
    std::uint8_t class_id = 0;  // in use: the class of the objects; free: see run_tree.h
    union {
        std::uint16_t taken = 0;  // bound: objects in use
                                  // big: the node that its pages were moved to, plus one; 0 for its own;
                                  // page_heap.h has the number that stands for several
                                  // free: see run_tree.h
        std::uint16_t away;       // small, of each bag of the run: a bit for each 4 KiB in which objects away begin
    };

    // The kind of a free piece. Dirty: may hold other than zeros. Stuck: dirty too, but the kernel did not take its
    // pages, or it is shorter than a page.
    enum class Piece : std::uint32_t { clean, dirty, stuck };
    struct Free {
        BagIndex left, right;   // first bag of a run: treap, run_tree.h. Last bag of a piece: left is the distance back
        BagIndex older, newer;  // queue of dirty pieces, by the time they became free
        std::uint32_t length : 30;  // of the piece, in bags
        Piece kind : 2;
        std::uint32_t since;  // dirty: when it became free, in milliseconds; wraps after 49 days
    };
    struct Small {
        std::uint64_t freed;      // the freed objects, and the bag's shard: heap/central/free_list.h
        BagIndex next, previous;  // in the shard's list of bags with free objects
        std::uint16_t carved;     // objects that were ever handed out
        std::int16_t here;        // of these, the number not away: n, or ~n if some are away; see here_of()
        static constexpr std::uint16_t never = 0xFFFF;
        // Number of freed objects that stayed when free pages were last returned; never: others were freed since.
        std::uint16_t looked_at;
        bool listed;     // in that list
        bool being_cut;  // a refill or FreePages takes freed objects without the lock
    };
    struct Bound {
        BoundHeap* heap;
        BagNumber next, previous;  // in one of the heap's lists
        std::uint16_t free;        // the object freed last, in granules from the bag's start
        std::uint16_t carved;
        std::uint8_t spread;  // 1: the heap's pages lie on several nodes
    };
    struct Big {
        static constexpr std::int32_t in_quarantine = -1;
        std::int32_t thread;   // the allocating thread's ThreadHeap::thread; 0: unknown; or in_quarantine
        std::uint32_t stripe;  // spread by weights: pages of one unit of weight, else 0
        std::uint32_t cycle;   // units of weight after which the nodes repeat
        std::uint32_t room;    // bags at the end that no realloc has asked for yet: big_objects.cpp
        std::uint16_t turns;   // nodes in a cycle
        bool has_grown;        // by a realloc
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

// The number of a small bag's carved objects that are not away. The word is negative if some are away: a free, which
// compares it with the number of free objects, then takes the slow path. Written under the shard's lock.
inline bool has_away(const Bag& bag) { return load_relaxed(bag.small.here) < 0; }
inline std::uint32_t here_of(const Bag& bag) {
    const std::int32_t word = load_acquire(bag.small.here);
    return static_cast<std::uint32_t>(word < 0 ? ~word : word);
}
inline std::uint32_t away_of(const Bag& bag) { return bag.small.carved - here_of(bag); }
inline void set_here(Bag& bag, std::uint32_t n) {
    store_release(bag.small.here, static_cast<std::int16_t>(n == bag.small.carved ? n : ~n));
}
// Counts `more` objects that were just carved.
inline void add_here(Bag& bag, std::uint32_t more) {
    const auto n = static_cast<std::int32_t>(more);
    store_relaxed(bag.small.here, static_cast<std::int16_t>(bag.small.here + (has_away(bag) ? -n : n)));
}
constexpr unsigned away_shift = 12;  // one bit of Bag::away stands for 4 KiB

// Four more bits a bag. The four words of 64 bags lie side by side.
enum class BagMark : unsigned {
    dirty,        // in use: might hold other than zeros when it was taken
    moved,        // lies in a mapping that was moved there, with its own policy and advice
    moved_first,  // a moved mapping begins here
    normal,       // advised against huge pages: heap/pages/huge_page_advice.h
};
constexpr unsigned bag_marks = 4;
constexpr Bytes bag_marks_bytes(std::uint64_t bags) { return divide_up(bags, 64) * bag_marks * sizeof(std::uint64_t); }

}  // namespace numalloc

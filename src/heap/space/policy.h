// The heap's tunable numbers: what it keeps, for how long, how far it searches, how much it does at a time. Changing
// one breaks nothing. Each is in namespace policy::OWNER beside the code that it tunes (`grep -rn 'namespace policy::'
// src`), and those that several files use are here. A comment gives the meaning, the unit and the reason; measurements:
// docs/measurements.md.
//
// Numbers that other code depends on (the width of a field, a layout) are defined beside that code.
#pragma once

#include "base/bits.h"

namespace numalloc::policy {

struct Fraction {
    std::uint64_t of;
    std::uint64_t parts;
    constexpr std::uint64_t part_of(std::uint64_t n) const { return n / parts * of; }
};

// A thread's lists of free objects.
namespace lists {

// Bytes that all lists of a thread may hold without a grant: with less, busy threads flush and refill lists.
constexpr Bytes any_may_hold = 192 * KiB;
// Bytes that the node grants at a time, from a budget that all threads share: few writes to a shared line.
constexpr Bytes grant = 64 * KiB;

}  // namespace lists

// The parts of a class on a node.
namespace shards {

// The number of shards of a class: one for each CPU, so that running threads rarely wait for each other's lock. At
// least 16, because threads in different phases should not mix their objects in one bag.
constexpr unsigned least = 16;
constexpr unsigned most = 128;
// The first shards, which have all objects above 32 KiB. With more, threads of which each has a few such objects would
// leave bags mostly empty, one for each thread and class.
constexpr unsigned of_large = 4;

}  // namespace shards

// The lists that no thread holds.
namespace rings {

// Places for lists in a ring: 16 batches of 8 KiB are classes::ring_target bytes.
constexpr unsigned slots = 16;

}  // namespace rings

}  // namespace numalloc::policy

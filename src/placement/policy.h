// Which node a new thread is bound to. Pure functions of who is where: no system calls, no
// locks, so that the tests ask them about any machine.
#pragma once

#include <cstdint>

#include "base/bit_set.h"
#include "base/ids.h"
#include "os/topology.h"

namespace numalloc::placement {

// A node with CPUs, with or without memory, counted from 0 in the order of the kernel's numbers.
struct PlaceId {
    std::uint16_t value = 0;
    constexpr PlaceId() = default;
    constexpr explicit PlaceId(unsigned v) : value(static_cast<std::uint16_t>(v)) {}
    constexpr bool operator==(const PlaceId&) const = default;
};
constexpr PlaceId no_place{0xFFFF};

using PlaceSet = BitSet<os::max_os_nodes>;

struct Place {
    std::uint32_t threads;  // that live there now, the program's own pinned ones included
    std::uint32_t cpus;     // that the process may use: as its mask was when it began
    std::uint16_t os_node;
    NodeId home;  // whose memory its threads use
};

struct Places {
    Place* place = nullptr;
    unsigned count = 0;

    Place& operator[](PlaceId id) const { return place[id.value]; }
    PlaceId of_os_node(int os_node) const;
};

// Where threads were that followed one another and have ended, and how many were there at most when one of them came or
// ended.
struct Vacated {
    PlaceId place = no_place;
    std::uint32_t threads = 0;
};

// The paper's default: each next thread on the next node, from the node of main (`first`) on.
// Said so that ended threads give their place back: the least populated node takes the thread,
// of equals the next one after `first`. While no thread ends that is the same; afterwards the
// threads stay balanced, and a program that starts and joins the same team again and again
// finds thread i on the same node each time. `allowed` has at least one place.
// `vacated`: of the thread that this one follows, if there was one. It goes there unless others have moved in since:
// what the one before it has left in memory is near there.
PlaceId choose_interleaved(const Places& places, const PlaceSet& allowed, PlaceId first, Vacated vacated = {});

// Fill the node of main with as many threads as it has CPUs, then the next, and so on; when all
// are full, a second layer. Ended threads give their place back here too.
PlaceId choose_saturated(const Places& places, const PlaceSet& allowed, PlaceId first, Vacated vacated = {});

}  // namespace numalloc::placement

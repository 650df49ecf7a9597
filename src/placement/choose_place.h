// Chooses one of several nodes for a thread. With binding=auto it is asked only for threads whose own node has no room
// (first_use.cpp). Pure functions of the threads' places: no system calls and no locks, so that tests can call them for
// any machine.
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
    std::uint32_t threads;  // that live there now, including those that the program pinned itself
    std::uint32_t cpus;     // that the process may use, by its mask when it began
    std::uint16_t os_node;
    NodeId home;  // the node whose memory its threads use
};

struct Places {
    Place* place = nullptr;
    unsigned count = 0;

    Place& operator[](PlaceId id) const { return place[id.value]; }
    PlaceId of_os_node(int os_node) const;
};

// The place where a creator's earlier threads ran, one after the other, until they ended; and the largest number of
// threads there when one of them began or ended.
struct Vacated {
    PlaceId place = no_place;
    std::uint32_t threads = 0;
};

// The paper's default: each thread goes to the node after the last thread's, starting from the node of main (`first`).
// Ended threads free their place: the least populated node gets the thread, of equal ones the first from `first` on. As
// long as no thread ends, that is the paper's order. Afterwards the threads stay balanced, and a program that starts
// and joins the same team repeatedly finds thread i on the same node each time. `allowed` has at least one place.
// `vacated`: where the thread that this one follows ran, if there was one. The new thread goes there unless others have
// moved in since, because the memory that its predecessor leaves is near.
PlaceId choose_interleaved(const Places& places, const PlaceSet& allowed, PlaceId first, Vacated vacated = {});

// Fills the node of main with as many threads as it has CPUs, then the next node, and so on; when all are full, adds a
// second layer. Ended threads free their place here too.
PlaceId choose_saturated(const Places& places, const PlaceSet& allowed, PlaceId first, Vacated vacated = {});

}  // namespace numalloc::placement

// Strong types for the small integers that floors pass to each other, so that a bag is never mistaken for a node. Each
// id is one integer in a register; construction is explicit.
#pragma once

#include <compare>
#include <cstdint>

namespace numalloc {

// A node with memory that we may use, numbered densely from 0 in the order of the kernel's numbers. The kernel's own
// number (which may have gaps) is Topology::os_node(NodeId).
struct NodeId {
    std::uint16_t value = 0;
    constexpr NodeId() = default;
    constexpr explicit NodeId(unsigned v) : value(static_cast<std::uint16_t>(v)) {}
    constexpr bool operator==(const NodeId&) const = default;
};
constexpr NodeId no_node{0xFFFF};

// A size class. Class 0 is "not a small object": the bag map's value for big objects, free bags and our own metadata.
struct ClassId {
    std::uint8_t value = 0;
    constexpr ClassId() = default;
    constexpr explicit ClassId(unsigned v) : value(static_cast<std::uint8_t>(v)) {}
    constexpr bool operator==(const ClassId&) const = default;
};
constexpr ClassId no_class{0};

// A bag (32 KiB) counted from the start of its node's region.
struct BagIndex {
    std::uint32_t value = 0;
    constexpr BagIndex() = default;
    constexpr explicit BagIndex(std::uint64_t v) : value(static_cast<std::uint32_t>(v)) {}
    constexpr auto operator<=>(const BagIndex&) const = default;
    constexpr BagIndex operator+(std::uint64_t bags) const { return BagIndex{value + bags}; }
    constexpr BagIndex operator-(std::uint64_t bags) const { return BagIndex{value - bags}; }
    constexpr std::uint32_t operator-(BagIndex from) const { return value - from.value; }
};

// The bags from `first` on, before `end`. Empty if it is made without values.
struct BagRange {
    BagIndex first{}, end{};
};

// A bag counted from the start of the address space, for structures with bags of several nodes.
struct BagNumber {
    std::uint32_t value = 0;
    constexpr BagNumber() = default;
    constexpr explicit BagNumber(std::uint64_t v) : value(static_cast<std::uint32_t>(v)) {}
    constexpr bool operator==(const BagNumber&) const = default;
};
constexpr BagNumber no_number{};

}  // namespace numalloc

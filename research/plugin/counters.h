// SPDX-License-Identifier: GPL-2.0-or-later
// What is counted: one table, from which the counters are made and written as JSON.
#pragma once
#include <array>
#include <cstdint>

namespace scope {

constexpr unsigned MOST_NODES = 32;

// X(name): numbers; by node: of the page's home (fills, writebacks) or of whoever gave the line (transfers).
#define SCOPE_NUMBERS(X)                                                                                         \
    X(instructions) X(loads) X(stores) X(l1_misses) X(l2_misses) X(llc_hits) X(remote_fills) X(remote_transfers)
#define SCOPE_BY_NODE(X) X(fills) X(transfers) X(writebacks)
#define SCOPE_CAUSES(X) X(cold) X(capacity) X(true_sharing) X(false_sharing) X(upgrade)
#define SCOPE_TLB(X) X(l1_misses) X(l2_misses) X(walk_lines_local) X(walk_lines_remote)

struct Counts {
#define SCOPE_FIELD(name) uint64_t name = 0;
    SCOPE_NUMBERS(SCOPE_FIELD)
    struct {
        SCOPE_CAUSES(SCOPE_FIELD)
    } causes;
    struct {
        SCOPE_TLB(SCOPE_FIELD)
    } tlb;
#undef SCOPE_FIELD
#define SCOPE_FIELD(name) std::array<uint64_t, MOST_NODES> name{};
    SCOPE_BY_NODE(SCOPE_FIELD)
#undef SCOPE_FIELD
};

// Everyone that an event is counted for.
struct Who {
    Counts* cpu;
    Counts* thread;
    Counts* code;

    template <class Add> void each(Add add) const {
        add(*cpu);
        add(*thread);
        add(*code);
    }
};

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
// Translated code: which instructions belong together, and how often they ran. CPUs count that in a board each.
#pragma once
#include <mutex>
#include <vector>

#include "qemu_plugin.h"
#include "report.h"

namespace scope {

struct Block {
    uint64_t start, end;
    std::vector<uint64_t> instructions;
    qemu_plugin_scoreboard* board;  // where the CPUs count how often it ran
    unsigned index;
    uint64_t undone = 0;   // instructions that were counted, but met a page fault first
    uint64_t counted = 0;  // of windows that have ended
};

inline std::mutex translating;  // for what translation makes: several CPUs may be at it

Block& new_block(qemu_plugin_tb* tb, size_t count);
uint64_t& runs_of(const Block& block, unsigned cpu);
// A window begins or ends: what ran until now belongs to the one that was open, if one was; `fresh`: nothing has been
// yet.
void close_blocks(bool was_open, bool fresh);
std::vector<Executed> executed();

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
// What was counted, and as JSON.
#pragma once
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "caches.h"
#include "calls.h"
#include "counters.h"
#include "settings.h"
#include "stacks.h"

namespace scope {

struct Thread {
    unsigned number = 0;  // in the order in which threads were seen
    Calls calls;
    Counts counts;
    std::array<uint64_t, MOST_NODES> instructions_on{};
};

// An instruction that touches memory.
struct Site {
    uint64_t address = 0;
    uint64_t loads = 0, stores = 0;
    unsigned bytes = 0;      // of one access; 0: it has not run yet
    Counts* counts[2] = {};  // of what it missed; the second: of the allocator's objects
};

// Instructions that were carried out at an address.
struct Executed {
    uint64_t address, instructions;
};

struct Totals {
    std::vector<Counts> cpus;
    std::deque<Thread> threads;  // in the order in which they were seen
    std::unordered_map<uint64_t, Site> sites;
    std::deque<Counts> sites_counts;
    StackSamples stacks;
    Counts nobody;  // what the kernel does where no thread has been seen yet

    Counts& of(Site& site, bool object) {
        Counts*& counts = site.counts[object];
        if (!counts) counts = &sites_counts.emplace_back();
        return *counts;
    }
    void clear();  // what was counted; whom is still known
};

struct Run {
    uint64_t number;  // that the launcher gave
    int status;       // the program's
    double seconds;   // of the host, in the window
    double cpu_seconds;
    std::string maps;
};

std::string json(const Settings& settings, const Totals& totals, const std::vector<Executed>& executed,
                 const Caches& caches, const Run& run);

}  // namespace scope

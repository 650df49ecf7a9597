// SPDX-License-Identifier: GPL-2.0-or-later
// What was counted, and as JSON.
#pragma once
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "caches.h"
#include "counters.h"
#include "settings.h"

namespace scope {

struct Thread {
    Counts counts;
    std::array<uint64_t, MOST_NODES> instructions_on{};
};

// An instruction that touches memory.
struct Site {
    uint64_t address = 0;
    uint64_t loads = 0, stores = 0;
    unsigned bytes = 0;  // of one access; 0: it has not run yet
    Counts* counts = nullptr;
};

// Instructions that were carried out at an address.
struct Executed {
    uint64_t address, instructions;
};

struct Totals {
    std::vector<Counts> cpus;
    std::deque<Thread> threads;  // in the order of their first instruction
    std::unordered_map<uint64_t, Site> sites;
    std::deque<Counts> sites_counts;
    Counts nobody;  // what the kernel does where no thread has been seen yet

    Counts& of(Site& site) {
        if (!site.counts) site.counts = &sites_counts.emplace_back();
        return *site.counts;
    }
    void clear();
};

struct Run {
    uint64_t number;  // that the launcher gave
    int status;       // the program's
    double seconds;   // of the host, in the window
    double cpu_seconds;
    std::string maps;
};

std::string json(const Settings& settings, const Totals& totals, const std::vector<Executed>& executed, const Caches& caches,
                 const Run& run);

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
// What the plugin is told: key=value, lists with colons between their parts.
#pragma once
#include <cstdint>
#include <string>

#include "caches.h"
#include "calls.h"
#include "tlb.h"
#include "topology.h"

namespace scope {

enum class Window { MAIN, MARKERS, WHOLE };

struct Settings {
    std::string out;
    Topology topology;
    CacheGeometry caches;
    TlbGeometry tlb;
    Window window = Window::MAIN;
    uint32_t sample = 1;
    bool objects = false;      // whether calls of the allocator are watched
    std::vector<Entry> calls;  // where its functions begin
    bool children = false;     // that it forks are counted, too
    bool kernel = false;       // counts what it does for the program as well
    bool stacks = false;       // samples of them where lines come from other nodes
    uint64_t quantum = 10000;  // instructions that a CPU may do before the next one has its turn
};

// An empty text, or what is wrong.
std::string read_settings(int count, char** arguments, Settings& settings);

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
#include "settings.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <vector>

namespace scope {
namespace {

using std::string_view;

std::vector<string_view> split(string_view text, char separator) {
    std::vector<string_view> parts;
    for (;;) {
        const size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

template <class Number> bool read(string_view text, Number& number, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

bool read(string_view text, bool& yes) {
    yes = text == "1";
    return yes || text == "0";
}

bool read_list(string_view text, std::vector<unsigned>& list, unsigned below) {
    for (const string_view part : split(text, ':')) {
        unsigned number;
        if (!read(part, number) || number >= below) return false;
        list.push_back(number);
    }
    return true;
}

// SIZE/WAYS, the size in `unit`.
bool read_geometry(string_view text, Geometry& geometry, uint64_t unit) {
    const auto parts = split(text, '/');
    uint64_t size;
    unsigned ways;
    if (parts.size() != 2 || !read(parts[0], size) || !read(parts[1], ways) || ways == 0 || size % unit) return false;
    geometry = {size / unit, ways};
    return geometry.entries > 0 && geometry.entries % ways == 0;
}

// START-END-NODE:..., addresses in hexadecimal.
bool read_memory(string_view text, Topology& topology) {
    for (const string_view range : split(text, ':')) {
        const auto parts = split(range, '-');
        uint64_t start, end;
        unsigned node;
        if (parts.size() != 3 || !read(parts[0], start, 16) || !read(parts[1], end, 16) || !read(parts[2], node))
            return false;
        if (start >= end || node >= MOST_NODES) return false;
        topology.add_memory(start, end, node);
        topology.nodes = node >= topology.nodes ? node + 1 : topology.nodes;
    }
    return true;
}

// A file with a line for each function: what it does, its place in its page and its first bytes, in hexadecimal.
bool read_calls(string_view path, std::vector<Entry>& calls) {
    std::ifstream file{std::string(path)};
    std::string function, code;
    Entry entry;
    while (file >> function >> std::hex >> entry.offset >> code) {
        const auto known = std::find(FUNCTIONS.begin(), FUNCTIONS.end(), function);
        if (known == FUNCTIONS.end() || entry.offset > 0xfff || code.size() % 2) return false;
        entry.function = static_cast<Function>(known - FUNCTIONS.begin());
        entry.code.resize(code.size() / 2);
        for (size_t at = 0; at < entry.code.size(); ++at)
            if (!read(string_view(code).substr(2 * at, 2), entry.code[at], 16)) return false;
        calls.push_back(entry);
    }
    return file.eof();
}

bool read_one(string_view key, string_view value, Settings& to) {
    constexpr unsigned line = 1 << LINE_BITS;
    if (key == "out") return !(to.out = value).empty();
    if (key == "node-of-cpu") return read_list(value, to.topology.node_of_cpu, MOST_NODES);
    if (key == "llc-of-cpu") return read_list(value, to.topology.llc_of_cpu, MOST_LLCS);
    if (key == "memory") return read_memory(value, to.topology);
    if (key == "l1")
        return read_geometry(value, to.caches.l1, line) && (to.caches.l1.sets() & (to.caches.l1.sets() - 1)) == 0;
    if (key == "l2") return read_geometry(value, to.caches.l2, line);
    if (key == "llc") return read_geometry(value, to.caches.llc, line);
    if (key == "tlb-l1-4k") return read_geometry(value, to.tlb.l1_4k, 1);
    if (key == "tlb-l1-2m") return read_geometry(value, to.tlb.l1_2m, 1);
    if (key == "tlb-l2") return read_geometry(value, to.tlb.l2, 1);
    if (key == "sample")
        return read(value, to.sample) && to.sample > 0 && to.sample <= 64 && (to.sample & (to.sample - 1)) == 0;
    if (key == "quantum") return read(value, to.quantum) && to.quantum > 0 && to.quantum < 1 << 23;
    if (key == "children") return read(value, to.children);
    if (key == "kernel") return read(value, to.kernel);
    if (key == "stacks") return read(value, to.stacks);
    if (key == "calls") return to.objects = true, read_calls(value, to.calls);
    if (key == "window") {
        to.window = value == "markers" ? Window::MARKERS : value == "whole" ? Window::WHOLE : Window::MAIN;
        return value == "markers" || value == "whole" || value == "main";
    }
    return false;
}

}  // namespace

std::string read_settings(int count, char** arguments, Settings& settings) {
    for (int index = 0; index < count; ++index) {
        const string_view argument = arguments[index];
        const size_t equals = argument.find('=');
        if (equals == string_view::npos || !read_one(argument.substr(0, equals), argument.substr(equals + 1), settings))
            return "'" + std::string(argument) + "' is not understood; research/plugin/README.md has what is accepted";
    }
    Topology& topology = settings.topology;
    for (const unsigned node : topology.node_of_cpu)
        topology.nodes = node >= topology.nodes ? node + 1 : topology.nodes;
    if (settings.out.empty() || topology.node_of_cpu.empty() || topology.lines() == 0)
        return "out, node-of-cpu and memory have to be given";
    if (topology.llc_of_cpu.empty()) topology.llc_of_cpu = topology.node_of_cpu;
    if (topology.llc_of_cpu.size() != topology.node_of_cpu.size())
        return "llc-of-cpu and node-of-cpu have different lengths";
    for (const Geometry* geometry : {&settings.caches.l1, &settings.caches.l2, &settings.caches.llc})
        if (geometry->sets() % settings.sample) return "sample has to divide the number of sets of every cache";
    topology.finish();
    return "";
}

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
// The machine: whose node and last level a CPU has, and where each node's memory lies among physical addresses.
#pragma once
#include <cstdint>
#include <vector>

namespace scope {

constexpr unsigned LINE_BITS = 6;
constexpr unsigned CHUNK_BITS = 20;  // nodes have whole megabytes
constexpr uint32_t NO_LINE = ~0u;

struct Topology {
    unsigned nodes = 0;
    std::vector<unsigned> node_of_cpu;
    std::vector<unsigned> llc_of_cpu;
    std::vector<unsigned> node_of_llc;
    std::vector<std::vector<unsigned>> cpus_of_llc;

    void finish() {  // after the tables of CPUs have been filled in
        for (unsigned cpu = 0; cpu < llc_of_cpu.size(); ++cpu) {
            const unsigned llc = llc_of_cpu[cpu];
            if (llc >= cpus_of_llc.size()) cpus_of_llc.resize(llc + 1), node_of_llc.resize(llc + 1);
            cpus_of_llc[llc].push_back(cpu);
            node_of_llc[llc] = node_of_cpu[cpu];
        }
    }

    void add_memory(uint64_t start, uint64_t end, unsigned node) {
        for (uint64_t chunk = start >> CHUNK_BITS; chunk < end >> CHUNK_BITS; ++chunk) {
            if (chunk >= chunks_.size()) chunks_.resize(chunk + 1, NO_LINE);
            chunks_[chunk] = static_cast<uint32_t>(homes_.size());
            homes_.push_back(static_cast<uint8_t>(node));
        }
    }

    // Lines of memory are numbered without the gaps between the ranges; NO_LINE for what is no memory.
    uint32_t line_of(uint64_t physical) const {
        const uint64_t chunk = physical >> CHUNK_BITS;
        if (chunk >= chunks_.size() || chunks_[chunk] == NO_LINE) return NO_LINE;
        constexpr unsigned within = CHUNK_BITS - LINE_BITS;
        return chunks_[chunk] << within | (static_cast<uint32_t>(physical >> LINE_BITS) & ((1u << within) - 1));
    }

    unsigned home(uint32_t line) const { return homes_[line >> (CHUNK_BITS - LINE_BITS)]; }
    uint32_t lines() const { return static_cast<uint32_t>(homes_.size() << (CHUNK_BITS - LINE_BITS)); }

private:
    std::vector<uint32_t> chunks_;  // of physical addresses: their number among those of memory
    std::vector<uint8_t> homes_;    // by that number
};

}  // namespace scope

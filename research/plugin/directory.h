// SPDX-License-Identifier: GPL-2.0-or-later
// Who may have a line of memory, and what others have written to it since a CPU lost it.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cache.h"

namespace scope {

constexpr uint16_t NO_CPU = 0xffff;
constexpr unsigned MOST_LLCS = 64;

// An entry of zero bytes is right for a line that nobody has had: the system gives pages of them on demand.
struct Holders {
    uint64_t groups;   // CPUs that share a last level, some of whom may have the line: a bit for each group
    uint64_t had;      // that had it at any time
    uint16_t owner_1;  // the one CPU that may write it, plus 1
    bool contended;    // a CPU has lost it because another one wrote

    uint16_t owner() const { return static_cast<uint16_t>(owner_1 - 1); }
    void set_owner(uint16_t cpu) { owner_1 = static_cast<uint16_t>(cpu + 1); }
};

class Directory {
public:
    explicit Directory(uint32_t lines) : bytes_(lines * sizeof(Holders)) {
        void* const memory =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        entries_ = memory == MAP_FAILED ? nullptr : static_cast<Holders*>(memory);
    }
    ~Directory() { munmap(entries_, bytes_); }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    bool valid() const { return entries_; }
    Holders& operator[](uint32_t line) { return entries_[line]; }
    void clear() { madvise(entries_, bytes_, MADV_DONTNEED); }

private:
    size_t bytes_;
    Holders* entries_;
};

// For each CPU that lost a line to a writer: the words that others have written since.
class Losses {
public:
    explicit Losses(unsigned cpus) : cpus_(cpus) {}

    void lose(uint32_t line, unsigned cpu) { of(line)[cpu] = LOST; }

    void write(uint32_t line, unsigned writer, Words words) {
        Entry& entry = of(line);
        for (unsigned cpu = 0; cpu < cpus_; ++cpu)
            if (cpu != writer && (entry[cpu] & LOST)) entry[cpu] |= words;
    }

    // The CPU has it again. True if it had lost it; `words` is then what it missed.
    bool regain(uint32_t line, unsigned cpu, Words& words) {
        uint32_t& entry = of(line)[cpu];
        const bool lost = entry & LOST;
        if (lost) words = entry & ~LOST;
        entry = 0;
        return lost;
    }

    void clear() { entries_.clear(); }

private:
    using Entry = std::vector<uint32_t>;
    static constexpr uint32_t LOST = 1u << 31;

    Entry& of(uint32_t line) {
        Entry& entry = entries_[line];
        if (entry.empty()) entry.resize(cpus_);
        return entry;
    }

    unsigned cpus_;
    std::unordered_map<uint32_t, Entry> entries_;
};

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
// Processes that the program forks. A child begins where its parent's system call returns, with 0 as the result, in the
// same thread's memory and with page tables that nobody of the program had.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace scope {

class Forks {
public:
    // A thread asks for a child: the address behind its system call, its thread pointer.
    void begin(uint64_t address, uint64_t pointer) {
        if (asked_.size() == MOST) asked_.erase(asked_.begin());  // it failed, long ago
        asked_.push_back({address, pointer});
    }

    // A process of which nothing is known is there, with this result.
    void see(uint64_t process, uint64_t address, uint64_t pointer, uint64_t result) {
        if (result) return;
        for (auto asked = asked_.begin(); asked != asked_.end(); ++asked)
            if (asked->address == address && asked->pointer == pointer) {
                asked_.erase(asked);
                children_.insert(process);
                return;
            }
    }

    // It ends, or becomes another program.
    void end(uint64_t process) { children_.erase(process); }
    bool is_child(uint64_t process) const { return children_.contains(process); }
    void clear() { asked_.clear(), children_.clear(); }

private:
    static constexpr size_t MOST = 64;
    struct Asked {
        uint64_t address, pointer;
    };

    std::vector<Asked> asked_;
    std::unordered_set<uint64_t> children_;
};

}  // namespace scope

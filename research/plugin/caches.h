// SPDX-License-Identifier: GPL-2.0-or-later
// The caches of all CPUs and what goes on between them: MESI by a directory. A CPU's first level holds a part of
// its second, the last level of a group of CPUs gets every line that one of them fetches, and keeps the ones
// that their second levels give up. A line that any other cache has is taken from there, from the nearest.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cache.h"
#include "counters.h"
#include "directory.h"
#include "objects.h"
#include "topology.h"

namespace scope {

struct CacheGeometry {
    Geometry l1{512, 8}, l2{16384, 16}, llc{262144, 16};  // in lines
};

// A line on which CPUs disturbed each other although none touched what another one had written.
struct FalseSharing {
    uint64_t line = 0;               // virtual
    unsigned first = 0, second = 0;  // bytes into it: what was touched, and what others had written
    uint32_t nodes = 0;              // a bit for each
    uint64_t times = 0;
    std::array<Object, 2> objects{};  // that the two are in
};

class Caches {
public:
    Caches(const Topology& topology, const CacheGeometry& geometry, Objects& objects);

    bool valid() const { return directory_.valid(); }
    L1& l1(unsigned cpu) { return cores_[cpu].l1; }

    // What the first level did not find, or found and may not write. `line_of()` says the line of memory; it is asked
    // only where the first level has none.
    template <class LineOf>
    void access(unsigned cpu, uint64_t line, Words words, bool store, const Who& who, LineOf line_of) {
        L1& l1 = cores_[cpu].l1;
        uint32_t slot = l1.use(line);
        if (slot == NO_SLOT) {
            who.each([](Counts& counts) { ++counts.l1_misses; });
            const uint32_t physical = line_of();
            if (physical == NO_LINE) return;
            slot = fetch(cpu, line, physical, store, who);
        } else if (store && !l1.writable(slot)) {
            make_writable(cpu, l1.link(slot), who);
        }
        l1.add(slot, words, store);
    }

    void forget_page(unsigned cpu, uint64_t address);  // of virtual memory: another page is there now
    void forget_all(unsigned cpu);                     // virtual addresses are another process's from now on
    void settle();                                     // gives every miss that is still open its cause
    void clear();                                      // empty caches, nobody has had anything
    const std::unordered_map<uint32_t, FalseSharing>& false_sharing() const { return false_sharing_; }

private:
    enum State : uint8_t { SHARED, EXCLUSIVE, MODIFIED };
    struct Line {
        Words use = 0;
        uint32_t l1_slot = NO_SLOT;
        State state = SHARED;
        bool open = false;  // fetched after others wrote: true or false sharing shows in what it is fetched for
        Words foreign = 0;  // what they wrote
        uint64_t address = 0;
        Counts* thread = nullptr;
        Counts* code = nullptr;
    };
    struct Core {
        L1 l1;
        SetCache<uint32_t, Line> l2;
        Counts* counts = nullptr;
    };
    struct Shared {
        bool dirty = false;
    };
    using Last = SetCache<uint32_t, Shared>;

    uint32_t fetch(unsigned cpu, uint64_t address, uint32_t line, bool store, const Who& who);
    uint32_t fetch_into_l2(unsigned cpu, uint64_t address, uint32_t line, bool store, const Who& who);
    void count_transfer(unsigned cpu, unsigned node, const Who& who) const;
    void make_writable(unsigned cpu, uint32_t slot, const Who& who);
    int nearest_holder(unsigned cpu, uint32_t line, const Holders& holders);
    bool in_group(unsigned group, uint32_t line) const;
    void take_from_others(unsigned cpu, uint32_t line);
    void downgrade(unsigned cpu, uint32_t line, const Who& who);
    static void forget(Core& core, uint32_t l1_slot);
    void drop(unsigned cpu, uint32_t slot);
    void lose(unsigned cpu, uint32_t line);
    void give_up(unsigned cpu, uint32_t slot, const Who& who);
    void into_last(unsigned group, uint32_t line, bool dirty, const Who& who);
    Words uses(Core& core, uint32_t slot);
    void publish(unsigned cpu, uint32_t slot);
    void close(unsigned cpu, uint32_t slot);

    const Topology& topology_;
    Objects& objects_;
    std::vector<Core> cores_;
    std::vector<Last> last_;
    Directory directory_;
    Losses losses_;
    std::unordered_map<uint32_t, FalseSharing> false_sharing_;
    CacheGeometry geometry_;
};

}  // namespace scope

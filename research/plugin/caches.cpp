// SPDX-License-Identifier: GPL-2.0-or-later
#include "caches.h"

#include <bit>

namespace scope {

Caches::Caches(const Topology& topology, const CacheGeometry& geometry, Objects& objects)
    : topology_(topology),
      objects_(objects),
      directory_(topology.lines()),
      losses_(static_cast<unsigned>(topology.node_of_cpu.size())),
      geometry_(geometry) {
    for (size_t cpu = 0; cpu < topology.node_of_cpu.size(); ++cpu)
        cores_.push_back({L1(geometry.l1), SetCache<uint32_t, Line>(geometry.l2)});
    for (size_t group = 0; group < topology.cpus_of_llc.size(); ++group) last_.emplace_back(geometry.llc);
}

void Caches::clear() {
    for (Core& core : cores_) core = {L1(geometry_.l1), SetCache<uint32_t, Line>(geometry_.l2)};
    for (Last& last : last_) last = Last(geometry_.llc);
    directory_.clear();
    losses_.clear();
    false_sharing_.clear();
}

// What the CPU did to the line since it has it; its first level knows the latest.
Words Caches::uses(Core& core, uint32_t slot) {
    Line& line = core.l2[slot];
    if (line.l1_slot != NO_SLOT) line.use |= core.l1.take(line.l1_slot);
    return line.use;
}

// Tells those who lost the line what this CPU has written to it.
void Caches::publish(unsigned cpu, uint32_t slot) {
    Core& core = cores_[cpu];
    const Words words = written(uses(core, slot));
    if (const uint32_t line = core.l2.key(slot); words && directory_[line].contended) losses_.write(line, cpu, words);
}

// The end of what was fetched after others wrote: it is known now what it was fetched for.
void Caches::close(unsigned cpu, uint32_t slot) {
    Core& core = cores_[cpu];
    Line& line = core.l2[slot];
    if (!line.open) return;
    line.open = false;
    const Words mine = touched(uses(core, slot));
    const bool together = mine & line.foreign;
    Who{core.counts, line.thread, line.code}.each(
        [&](Counts& counts) { ++(together ? counts.causes.true_sharing : counts.causes.false_sharing); });
    if (together) return;
    FalseSharing& found = false_sharing_[core.l2.key(slot)];
    found.line = line.address << LINE_BITS;
    found.first = 4 * static_cast<unsigned>(std::countr_zero(mine));
    if (line.foreign) found.second = 4 * static_cast<unsigned>(std::countr_zero(line.foreign));
    found.nodes |= 1u << topology_.node_of_cpu[cpu];
    ++found.times;
    found.objects = {objects_.at(found.line + found.first), objects_.at(found.line + found.second)};
}

void Caches::settle() {
    for (unsigned cpu = 0; cpu < cores_.size(); ++cpu)
        for (uint32_t slot = 0; slot < cores_[cpu].l2.slots(); ++slot)
            if (!cores_[cpu].l2.empty(slot)) close(cpu, slot);
}

// Without the line the CPU has no part of it in its first level either.
void Caches::drop(unsigned cpu, uint32_t slot) {
    Core& core = cores_[cpu];
    publish(cpu, slot);
    close(cpu, slot);
    if (const uint32_t l1_slot = core.l2[slot].l1_slot; l1_slot != NO_SLOT) core.l1.remove(l1_slot);
    core.l2.remove(slot);
}

// Another CPU is going to write.
void Caches::lose(unsigned cpu, uint32_t line) {
    const uint32_t slot = cores_[cpu].l2.find(line);
    if (slot == NO_SLOT) return;
    drop(cpu, slot);
    directory_[line].contended = true;
    losses_.lose(line, cpu);
}

// The second level needs the room.
void Caches::give_up(unsigned cpu, uint32_t slot, const Who& who) {
    Core& core = cores_[cpu];
    const uint32_t line = core.l2.key(slot);
    const State state = core.l2[slot].state;
    drop(cpu, slot);
    if (state != SHARED) directory_[line].set_owner(NO_CPU);
    into_last(topology_.llc_of_cpu[cpu], line, state == MODIFIED, who);
}

void Caches::into_last(unsigned group, uint32_t line, bool dirty, const Who& who) {
    Last& last = last_[group];
    if (const uint32_t slot = last.use(line); slot != NO_SLOT) {
        last[slot].dirty |= dirty;
        return;
    }
    const uint32_t slot = last.room(line);
    if (!last.empty(slot) && last[slot].dirty) {
        const unsigned home = topology_.home(last.key(slot));
        who.each([&](Counts& counts) { ++counts.writebacks[home]; });
    }
    last.put(slot, line, {dirty});
}

// All other copies go. Only CPUs that share the line, or its owner, can have it.
void Caches::take_from_others(unsigned cpu, uint32_t line) {
    Holders& holders = directory_[line];
    const unsigned own = topology_.llc_of_cpu[cpu];
    const uint16_t owner = holders.owner();
    if (owner != NO_CPU && owner != cpu) lose(owner, line);
    for (uint64_t left = holders.groups; left; left &= left - 1) {
        const unsigned group = static_cast<unsigned>(std::countr_zero(left));
        if (owner == NO_CPU)
            for (const unsigned other : topology_.cpus_of_llc[group])
                if (other != cpu) lose(other, line);
        if (const uint32_t slot = last_[group].find(line); slot != NO_SLOT) {
            if (group == own) last_[group][slot].dirty = false;  // what it holds is old from now on
            else last_[group].remove(slot);
        }
    }
    holders.groups = uint64_t{1} << own;
    holders.set_owner(static_cast<uint16_t>(cpu));
}

void Caches::make_writable(unsigned cpu, uint32_t slot, const Who& who) {
    Core& core = cores_[cpu];
    if (core.l2[slot].state == SHARED) {
        who.each([](Counts& counts) { ++counts.causes.upgrade; });
        take_from_others(cpu, core.l2.key(slot));
    }
    core.l2[slot].state = MODIFIED;
    if (const uint32_t l1_slot = core.l2[slot].l1_slot; l1_slot != NO_SLOT) core.l1.set_writable(l1_slot, true);
}

// The owner shares its line with a reader; what it has written goes to its last level.
void Caches::downgrade(unsigned cpu, uint32_t line, const Who& who) {
    Core& core = cores_[cpu];
    const uint32_t slot = core.l2.find(line);
    publish(cpu, slot);
    Line& mine = core.l2[slot];
    mine.use = touched(mine.use);  // what it writes from now on is another matter
    if (mine.state == MODIFIED) into_last(topology_.llc_of_cpu[cpu], line, true, who);
    mine.state = SHARED;
    if (mine.l1_slot != NO_SLOT) core.l1.set_writable(mine.l1_slot, false);
    directory_[line].set_owner(NO_CPU);
}

bool Caches::in_group(unsigned group, uint32_t line) const {
    if (last_[group].find(line) != NO_SLOT) return true;
    for (const unsigned cpu : topology_.cpus_of_llc[group])
        if (cores_[cpu].l2.find(line) != NO_SLOT) return true;
    return false;
}

// The node of the nearest cache that has the line, other than the CPU's own last level; -1 if there is none.
int Caches::nearest_holder(unsigned cpu, uint32_t line, const Holders& holders) {
    const unsigned node = topology_.node_of_cpu[cpu];
    int found = -1;
    for (uint64_t left = holders.groups; left; left &= left - 1) {
        const unsigned group = static_cast<unsigned>(std::countr_zero(left));
        const unsigned there = topology_.node_of_llc[group];
        if (found >= 0 && there != node) continue;
        if (in_group(group, line)) found = static_cast<int>(there);
        if (found == static_cast<int>(node)) break;
    }
    return found;
}

void Caches::count_transfer(unsigned cpu, unsigned node, const Who& who) const {
    const bool remote = node != topology_.node_of_cpu[cpu];
    who.each([&](Counts& counts) {
        ++counts.transfers[node];
        counts.remote_transfers += remote;
    });
}

uint32_t Caches::fetch_into_l2(unsigned cpu, uint64_t address, uint32_t line, bool store, const Who& who) {
    Core& core = cores_[cpu];
    Holders& holders = directory_[line];
    const unsigned own = topology_.llc_of_cpu[cpu];
    const uint16_t owner = holders.owner();
    who.each([](Counts& counts) { ++counts.l2_misses; });

    Line fresh;
    bool shared = true, written_elsewhere = false;
    if (owner != NO_CPU) {
        const uint32_t theirs = cores_[owner].l2.find(line);
        const unsigned node = topology_.node_of_cpu[owner];
        count_transfer(cpu, node, who);
        written_elsewhere = cores_[owner].l2[theirs].state == MODIFIED;
        if (written_elsewhere) fresh.foreign = written(uses(cores_[owner], theirs));
        if (store) publish(owner, theirs);
        else downgrade(owner, line, who);
    } else if (last_[own].use(line) != NO_SLOT) {
        who.each([](Counts& counts) { ++counts.llc_hits; });
    } else if (const int node = nearest_holder(cpu, line, holders); node >= 0) {
        count_transfer(cpu, static_cast<unsigned>(node), who);
    } else {
        shared = false;
        holders.groups = 0;
        const unsigned home = topology_.home(line);
        const bool remote = home != topology_.node_of_cpu[cpu];
        who.each([&](Counts& counts) {
            ++counts.fills[home];
            counts.remote_fills += remote;
        });
    }

    Words missed = 0;
    if (holders.contended && losses_.regain(line, cpu, missed)) {
        fresh.open = true;
        fresh.foreign = missed;
    } else if (written_elsewhere) {
        fresh.open = true;
    } else if (!(holders.had >> own & 1)) {
        who.each([](Counts& counts) { ++counts.causes.cold; });
    } else {
        who.each([](Counts& counts) { ++counts.causes.capacity; });
    }

    if (store) take_from_others(cpu, line);
    else if (!shared) holders.set_owner(static_cast<uint16_t>(cpu));
    holders.groups |= uint64_t{1} << own;
    holders.had |= uint64_t{1} << own;
    fresh.state = store ? MODIFIED : shared ? SHARED : EXCLUSIVE;
    fresh.address = address;
    fresh.thread = who.thread;
    fresh.code = who.code;

    const uint32_t slot = core.l2.room(line);
    if (!core.l2.empty(slot)) give_up(cpu, slot, who);
    into_last(own, line, false, who);
    core.counts = who.cpu;
    core.l2.put(slot, line, fresh);
    return slot;
}

// Into the first level, whose slot is returned.
uint32_t Caches::fetch(unsigned cpu, uint64_t address, uint32_t line, bool store, const Who& who) {
    Core& core = cores_[cpu];
    uint32_t slot = core.l2.use(line);
    if (slot == NO_SLOT) slot = fetch_into_l2(cpu, address, line, store, who);
    else if (store && core.l2[slot].state != MODIFIED) make_writable(cpu, slot, who);

    Line& there = core.l2[slot];
    if (there.l1_slot != NO_SLOT) {  // under another virtual address
        uses(core, slot);
        core.l1.remove(there.l1_slot);
    }
    const uint32_t l1_slot = core.l1.room(address);
    if (!core.l1.empty(l1_slot)) {
        Line& before = core.l2[core.l1.link(l1_slot)];
        before.use |= core.l1.take(l1_slot);
        before.l1_slot = NO_SLOT;
    }
    core.l1.put(l1_slot, address, there.state == MODIFIED, slot);
    there.l1_slot = l1_slot;
    return l1_slot;
}

void Caches::forget(Core& core, uint32_t l1_slot) {
    Line& there = core.l2[core.l1.link(l1_slot)];
    there.use |= core.l1.take(l1_slot);
    there.l1_slot = NO_SLOT;
    core.l1.remove(l1_slot);
}

void Caches::forget_all(unsigned cpu) {
    Core& core = cores_[cpu];
    for (uint32_t slot = 0; slot < core.l1.slots(); ++slot)
        if (!core.l1.empty(slot)) forget(core, slot);
}

void Caches::forget_page(unsigned cpu, uint64_t address) {
    Core& core = cores_[cpu];
    const uint64_t first = address >> 12 << (12 - LINE_BITS);
    for (uint64_t line = first; line < first + (1u << (12 - LINE_BITS)); ++line)
        if (const uint32_t slot = core.l1.use(line); slot != NO_SLOT) forget(core, slot);
}

}  // namespace scope

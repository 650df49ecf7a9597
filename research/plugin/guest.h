// SPDX-License-Identifier: GPL-2.0-or-later
// What all parts of the plugin know: the guest's CPUs, what is counted of them, and how to read a CPU's registers and
// memory. Only the CPU that has the turn touches what is counted.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "objects.h"
#include "qemu_plugin.h"
#include "report.h"
#include "settings.h"
#include "vcpu.h"

namespace scope {

constexpr uint64_t KERNEL_HALF = uint64_t{1} << 63;
constexpr uint64_t DIRECT_MAP = 0xffff888000000000;  // of all memory, in a kernel that is told nokaslr and no5lvl

inline Settings settings;
inline std::unique_ptr<Caches> caches;
inline std::vector<std::unique_ptr<Vcpu>> vcpus;
inline Totals totals;
inline Objects objects;
inline qemu_plugin_scoreboard* ticks;

inline uint64_t read(Vcpu& cpu, qemu_plugin_register* Registers::* name) {
    g_byte_array_set_size(cpu.bytes, 0);
    uint64_t value = 0;
    const int size = qemu_plugin_read_register(cpu.registers.*name, cpu.bytes);
    if (size > 0) memcpy(&value, cpu.bytes->data, std::min(static_cast<size_t>(size), sizeof value));
    return value;
}

inline uint64_t read_physical(Vcpu& cpu, uint64_t address) {
    uint64_t value = 0;
    g_byte_array_set_size(cpu.bytes, sizeof value);
    if (qemu_plugin_read_memory_vaddr(DIRECT_MAP + address, cpu.bytes, sizeof value))
        memcpy(&value, cpu.bytes->data, sizeof value);
    return value;
}

// Of the process that the CPU is in.
inline uint64_t read_word(Vcpu& cpu, uint64_t address) {
    uint64_t value = 0;
    if (qemu_plugin_read_memory_vaddr(address, cpu.bytes, sizeof value)) memcpy(&value, cpu.bytes->data, sizeof value);
    return value;
}

inline Ticks& ticks_of(unsigned cpu) { return *static_cast<Ticks*>(qemu_plugin_scoreboard_find(ticks, cpu)); }

}  // namespace scope

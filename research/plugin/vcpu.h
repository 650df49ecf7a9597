// SPDX-License-Identifier: GPL-2.0-or-later
// A guest's CPU and the code that it runs, as the plugin sees them.
#pragma once
#include <cstdint>
#include <vector>

#include "qemu_plugin.h"
#include "report.h"
#include "tlb.h"
#include "walker.h"

namespace scope {

// Words of a CPU that the translated code itself adds to.
struct Ticks {
    uint64_t events;  // instructions of user mode since the last look at it; KERNEL for each block of the kernel's
    uint64_t block;   // the Block that ran last
    uint64_t turn;    // whether it has the turn
};
constexpr uint64_t KERNEL = 1 << 24;  // more than a CPU's turn has instructions

struct Registers {
    qemu_plugin_register *rax, *rbx, *rdx, *rbp, *rdi, *rsi, *rsp, *r12, *r13, *r14, *r15, *cr2, *cr3, *fs_base;
};

struct Vcpu {
    Vcpu(unsigned number, const TlbGeometry& geometry) : number(number), tlb(geometry) {}

    unsigned number;
    bool counting = false;
    L1* l1 = nullptr;
    uint64_t loads = 0, stores = 0, instructions = 0;  // that its thread has not got yet
    uint64_t turn = 0;                                 // instructions since other CPUs had theirs
    uint64_t awake = 0;                                // of its events, what only makes the next block ask again
    Thread* thread = nullptr;
    uint64_t awaited = 0;             // see Calls; of its thread
    uint64_t task = 0;                // the kernel's, that it is in; known from the first switch on
    uint64_t cached = 0;              // the process whose addresses its first level and TLBs have
    uint64_t process = 0, fault = 0;  // CR3 and CR2, as they were last
    Registers registers{};
    GByteArray* bytes = g_byte_array_new();
    Tlb tlb;
    Walker walker;
};

}  // namespace scope

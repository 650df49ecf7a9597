// SPDX-License-Identifier: GPL-2.0-or-later
#include "translation.h"

#include "accesses.h"
#include "blocks.h"
#include "call_watch.h"
#include "guest.h"
#include "instructions.h"
#include "window.h"

namespace scope {
namespace {

Site& site_of(qemu_plugin_insn* instruction) {
    const uint64_t address = qemu_plugin_insn_vaddr(instruction);
    Site& site = totals.sites[address];
    site.address = address;
    return site;
}

Access kind_of(const uint8_t* code, size_t size) {
    if (settings.objects && is_return(code, size)) return Access::RETURN;
    return is_atomic(code, size) ? Access::ATOMIC : Access::PLAIN;
}

void watch(qemu_plugin_insn* instruction) {
    Site& site = site_of(instruction);
    uint8_t code[LONGEST_INSTRUCTION];
    const size_t size = qemu_plugin_insn_data(instruction, code, sizeof code);
    watch_accesses(instruction, site, kind_of(code, size));
    const auto call = [&](qemu_plugin_vcpu_udata_cb_t what, void* data) {
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, what, QEMU_PLUGIN_CB_R_REGS, data);
    };
    if (is_main(site.address)) call(on_main, &site);
    if (is_system_call(code, size)) call(on_system_call, &site);
    if (is_pause(code, size)) call(on_pause, nullptr);
    if (const uint32_t what = marker(code, size)) call(on_marker, reinterpret_cast<void*>(uintptr_t{what}));
}

// The kernel is watched only for where it is entered, and where it spins; unless it is to be counted, too.
void translate_kernel(qemu_plugin_tb* tb, size_t count) {
    Block* const block = settings.kernel ? &new_block(tb, count) : nullptr;
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, block ? on_kernel_block : on_leave, QEMU_PLUGIN_CB_NO_REGS,
                                              QEMU_PLUGIN_COND_NE, {ticks, offsetof(Ticks, turn)}, 0, block);
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, {ticks, offsetof(Ticks, events)},
                                                      KERNEL);
    uint8_t before[LONGEST_INSTRUCTION], code[LONGEST_INSTRUCTION];
    for (size_t index = 0, size_before = 0; index < count; ++index) {
        qemu_plugin_insn* const instruction = qemu_plugin_tb_get_insn(tb, index);
        const size_t size = qemu_plugin_insn_data(instruction, code, sizeof code);
        if (is_pause(code, size))
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_kernel_pause, QEMU_PLUGIN_CB_NO_REGS, nullptr);
        if (block) {
            watch_accesses(instruction, site_of(instruction), is_atomic(code, size) ? Access::ATOMIC : Access::PLAIN);
            if (is_task_switch(before, size_before, code, size))
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_task_switch, QEMU_PLUGIN_CB_R_REGS, nullptr);
            memcpy(before, code, size_before = size);
        }
    }
}

}  // namespace

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* tb) {
    const size_t count = qemu_plugin_tb_n_insns(tb);
    const std::lock_guard lock(translating);
    if (qemu_plugin_tb_vaddr(tb) & KERNEL_HALF) return translate_kernel(tb, count);
    Block& block = new_block(tb, count);
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_event, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_COND_GE,
                                              {ticks, offsetof(Ticks, events)}, settings.quantum, &block);
    const auto inlined = [&](qemu_plugin_op what, qemu_plugin_scoreboard* to, size_t offset, uint64_t number) {
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, what, {to, offset}, number);
    };
    inlined(QEMU_PLUGIN_INLINE_ADD_U64, ticks, offsetof(Ticks, events), count);
    inlined(QEMU_PLUGIN_INLINE_STORE_U64, ticks, offsetof(Ticks, block), reinterpret_cast<uintptr_t>(&block));
    inlined(QEMU_PLUGIN_INLINE_ADD_U64, block.board, block.index * sizeof(uint64_t), 1);
    watch_calls(tb);
    for (size_t index = 0; index < count; ++index) watch(qemu_plugin_tb_get_insn(tb, index));
}

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
#include "call_watch.h"

#include <algorithm>

namespace scope {
namespace {

constexpr uint64_t PAGE = 4096;

void on_call(unsigned number, void* data) {
    Vcpu& cpu = *vcpus[number];
    if (!cpu.thread) return;
    const Function function = static_cast<const Entry*>(data)->function;
    const uint64_t first = read(cpu, &Registers::rdi);
    if (function == Function::FREE) return objects.free(first);
    const bool one = function == Function::MALLOC;
    const uint64_t second = one ? 0 : read(cpu, &Registers::rsi), third = one ? 0 : read(cpu, &Registers::rdx);
    cpu.thread->calls.begin(call_of(function, read(cpu, &Registers::rsp), first, second, third));
    cpu.awaited = cpu.thread->calls.awaited();
}

bool begins(const Entry& entry, uint64_t address, GByteArray* bytes) {
    const size_t size = std::min<uint64_t>(entry.code.size(), PAGE - entry.offset);
    return qemu_plugin_read_memory_vaddr(address, bytes, size) && !memcmp(bytes->data, entry.code.data(), size);
}

}  // namespace

void watch_calls(qemu_plugin_tb* tb) {
    static GByteArray* const bytes = g_byte_array_new();
    const uint64_t address = qemu_plugin_tb_vaddr(tb);
    for (Entry& entry : settings.calls)
        if (entry.offset == address % PAGE && begins(entry, address, bytes))
            return qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, 0), on_call,
                                                          QEMU_PLUGIN_CB_R_REGS, &entry);
}

void end_call(Vcpu& cpu) {
    const Call call = cpu.thread->calls.end();
    cpu.awaited = cpu.thread->calls.awaited();
    const uint64_t returned = read(cpu, &Registers::rax);
    const uint64_t address = !call.result ? returned : returned ? 0 : read_word(cpu, call.result);
    if (call.before && address && call.before != address) objects.free(call.before);
    objects.add(address, call.size, cpu.thread->number);
}

}  // namespace scope

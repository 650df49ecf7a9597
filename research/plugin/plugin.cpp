// SPDX-License-Identifier: GPL-2.0-or-later
// QEMU's side of numascope: it starts here. QEMU has a host thread for each CPU (with tcg,thread=single its plugins
// would not learn which CPU is meant); of those that are in user mode one runs at a time (window.h), and what it does
// goes through caches and TLBs (accesses.h).
#include <cstdio>
#include <cstring>

#include "guest.h"
#include "qemu_plugin.h"
#include "translation.h"

#define SCOPE_EXPORT extern "C" __attribute__((visibility("default")))

SCOPE_EXPORT int qemu_plugin_version;
int qemu_plugin_version = 4;

namespace scope {
namespace {

void on_vcpu(qemu_plugin_id_t, unsigned number) {
    while (vcpus.size() <= number) vcpus.push_back(nullptr);
    vcpus[number] = std::make_unique<Vcpu>(number, settings.tlb);
    vcpus[number]->l1 = &caches->l1(number);
    GArray* const registers = qemu_plugin_get_registers();
    const struct {
        const char* name;
        qemu_plugin_register* Registers::* handle;
    } wanted[] = {{"rax", &Registers::rax}, {"rbx", &Registers::rbx},        {"rdx", &Registers::rdx},
                  {"rbp", &Registers::rbp}, {"rdi", &Registers::rdi},        {"rsi", &Registers::rsi},
                  {"rsp", &Registers::rsp}, {"r12", &Registers::r12},        {"r13", &Registers::r13},
                  {"r14", &Registers::r14}, {"r15", &Registers::r15},        {"cr2", &Registers::cr2},
                  {"cr3", &Registers::cr3}, {"fs_base", &Registers::fs_base}};
    const auto* const all = reinterpret_cast<const qemu_plugin_reg_descriptor*>(registers->data);
    for (unsigned index = 0; index < registers->len; ++index)
        for (const auto& [name, handle] : wanted)
            if (!strcmp(all[index].name, name)) vcpus[number]->registers.*handle = all[index].handle;
    g_array_free(registers, true);
}

int refuse(const char* why) {
    fprintf(stderr, "numascope: %s\n", why);
    return 1;
}

int install(qemu_plugin_id_t id, const qemu_info_t* info, int count, char** arguments) {
    if (!info->system_emulation || strcmp(info->target_name, "x86_64")) return refuse("accepted: qemu-system-x86_64");
    if (const std::string fault = read_settings(count, arguments, settings); !fault.empty())
        return refuse(fault.c_str());
    caches = std::make_unique<Caches>(settings.topology, settings.caches, objects);
    if (!caches->valid()) return refuse("there is no address space for the directory of cache lines");
    totals.cpus.resize(settings.topology.node_of_cpu.size());
    ticks = qemu_plugin_scoreboard_new(sizeof(Ticks));
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    return 0;
}

}  // namespace
}  // namespace scope

SCOPE_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int count, char** arguments) {
    return scope::install(id, info, count, arguments);
}

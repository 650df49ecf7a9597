// SPDX-License-Identifier: GPL-2.0-or-later
#include "accesses.h"

#include "guest.h"

namespace scope {
namespace {

Who who(Vcpu& cpu, Site& site) {
    return {&totals.cpus[cpu.number], cpu.thread ? &cpu.thread->counts : &totals.nobody, &totals.of(site)};
}

[[gnu::noinline]] void miss_tlb(Vcpu& cpu, uint64_t address, Site& site) {
    cpu.tlb.miss(address, who(cpu, site), [&] {
        const unsigned node = settings.topology.node_of_cpu[cpu.number];
        const auto read = [&](uint64_t at) { return read_physical(cpu, at); };
        return cpu.walker.walk(cpu.process, address, node, settings.topology, read);
    });
}

[[gnu::noinline]] void miss_l1(Vcpu& cpu, qemu_plugin_meminfo_t info, uint64_t address, Words words, bool store,
                               Site& site) {
    caches->access(cpu.number, address >> LINE_BITS, words, store, who(cpu, site), [&] {
        const qemu_plugin_hwaddr* const where = qemu_plugin_get_hwaddr(info, address);
        if (!where || qemu_plugin_hwaddr_is_io(where)) return NO_LINE;
        return settings.topology.line_of(qemu_plugin_hwaddr_phys_addr(where));
    });
}

// Within one line.
template <bool STORE>
inline void access_line(Vcpu& cpu, qemu_plugin_meminfo_t info, uint64_t address, Words words, Site& site) {
    if (!cpu.tlb.hit_latest(address) && !cpu.tlb.hit(address)) [[unlikely]] miss_tlb(cpu, address, site);
    const uint64_t line = address >> LINE_BITS;
    if (cpu.l1->hit<STORE>(line, words) || line & (settings.sample - 1)) return;
    if (!cpu.l1->hit_any(line, words, STORE)) [[unlikely]] miss_l1(cpu, info, address, words, STORE, site);
}

// Over the end of a line: in two parts.
template <bool STORE>
[[gnu::noinline]] void access_two_lines(Vcpu& cpu, qemu_plugin_meminfo_t info, uint64_t address, Site& site) {
    const uint64_t next = (address | ((1 << LINE_BITS) - 1)) + 1;
    const Words left = (1u << ((address + site.bytes - next + 3) >> 2)) - 1;
    access_line<STORE>(cpu, info, address, 0xffffu << ((address & 63) >> 2) & 0xffff, site);
    access_line<STORE>(cpu, info, next, left, site);
}

// TO_WRITE: the line is asked for writing, which an instruction that reads and writes in one does when it reads.
template <bool STORE, bool TO_WRITE> inline void access(Vcpu& cpu, qemu_plugin_meminfo_t info, uint64_t address, Site& site) {
    ++(STORE ? cpu.stores : cpu.loads);
    ++(STORE ? site.stores : site.loads);
    if (!site.bytes) [[unlikely]] site.bytes = 1u << qemu_plugin_mem_size_shift(info);
    const unsigned offset = address & 63;
    if (offset + site.bytes > 64) [[unlikely]] return access_two_lines<TO_WRITE>(cpu, info, address, site);
    const Words words = ((1u << ((site.bytes + 3) >> 2)) - 1) << (offset >> 2);
    access_line<TO_WRITE>(cpu, info, address, words & 0xffff, site);
}

template <bool STORE, bool TO_WRITE>
void on_access(unsigned number, qemu_plugin_meminfo_t info, uint64_t address, void* data) {
    Vcpu& cpu = *vcpus[number];
    if (cpu.counting) access<STORE, TO_WRITE>(cpu, info, address, *static_cast<Site*>(data));
}

}  // namespace

void watch_accesses(qemu_plugin_insn* instruction, Site& site, bool atomic) {
    const auto loaded = atomic ? on_access<false, true> : on_access<false, false>;
    qemu_plugin_register_vcpu_mem_cb(instruction, loaded, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_R, &site);
    qemu_plugin_register_vcpu_mem_cb(instruction, on_access<true, true>, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, &site);
}

}  // namespace scope

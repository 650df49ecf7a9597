// SPDX-License-Identifier: GPL-2.0-or-later
#include "accesses.h"

#include "call_watch.h"
#include "guest.h"

namespace scope {
namespace {

Who who(Vcpu& cpu, Site& site, uint64_t address) {
    Counts& code = totals.of(site, settings.objects && objects.holds(address));
    return {&totals.cpus[cpu.number], cpu.thread ? &cpu.thread->counts : &totals.nobody, &code};
}

[[gnu::noinline]] void miss_tlb(Vcpu& cpu, uint64_t address, Site& site) {
    cpu.tlb.miss(address, who(cpu, site, address), [&] {
        const unsigned node = settings.topology.node_of_cpu[cpu.number];
        const auto read = [&](uint64_t at) { return read_physical(cpu, at); };
        return cpu.walker.walk(cpu.process, address, node, settings.topology, read);
    });
}

void sample_stack(Vcpu& cpu, uint64_t address, bool transfer) {
    StackSample sample{address, transfer, {}, {}};
    constexpr qemu_plugin_register* Registers::* NAMES[] = {&Registers::rbx, &Registers::rbp, &Registers::rsp,
                                                            &Registers::r12, &Registers::r13, &Registers::r14,
                                                            &Registers::r15};
    for (unsigned index = 0; index < StackSample::REGISTERS; ++index) sample.registers[index] = read(cpu, NAMES[index]);
    const uint64_t start = read(cpu, &Registers::rsp);
    for (uint64_t at = start; at < start + StackSamples::BYTES;) {  // page by page, to where it ends
        const size_t size = std::min(start + StackSamples::BYTES, (at | 0xfff) + 1) - at;
        if (!qemu_plugin_read_memory_vaddr(at, cpu.bytes, size)) break;
        sample.stack.insert(sample.stack.end(), cpu.bytes->data, cpu.bytes->data + size);
        at += size;
    }
    totals.stacks.add(std::move(sample));
}

[[gnu::noinline]] void miss_l1(Vcpu& cpu, qemu_plugin_meminfo_t info, uint64_t address, Words words, bool store,
                               Site& site) {
    const Who whom = who(cpu, site, address);
    const uint64_t fills = whom.cpu->remote_fills, transfers = whom.cpu->remote_transfers;
    caches->access(cpu.number, address >> LINE_BITS, words, store, whom, [&] {
        const qemu_plugin_hwaddr* const where = qemu_plugin_get_hwaddr(info, address);
        if (!where || qemu_plugin_hwaddr_is_io(where)) return NO_LINE;
        return settings.topology.line_of(qemu_plugin_hwaddr_phys_addr(where));
    });
    const bool transfer = whom.cpu->remote_transfers != transfers;
    if (settings.stacks && (transfer || whom.cpu->remote_fills != fills) && totals.stacks.next())
        sample_stack(cpu, site.address, transfer);
}

// Within one line.
template <bool STORE>
inline void access_line(Vcpu& cpu, qemu_plugin_meminfo_t info, uint64_t address, Words words, Site& site) {
    if (!cpu.tlb.hit_latest(address) && !cpu.tlb.hit(address)) [[unlikely]]
        miss_tlb(cpu, address, site);
    const uint64_t line = address >> LINE_BITS;
    if (cpu.l1->hit<STORE>(line, words) || line & (settings.sample - 1)) return;
    if (!cpu.l1->hit_any(line, words, STORE)) [[unlikely]]
        miss_l1(cpu, info, address, words, STORE, site);
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
template <bool STORE, bool TO_WRITE> inline void access(Vcpu& cpu, qemu_plugin_meminfo_t info, uint64_t address,
                                                        Site& site) {
    ++(STORE ? cpu.stores : cpu.loads);
    ++(STORE ? site.stores : site.loads);
    if (!site.bytes) [[unlikely]]
        site.bytes = 1u << qemu_plugin_mem_size_shift(info);
    const unsigned offset = address & 63;
    if (offset + site.bytes > 64) [[unlikely]]
        return access_two_lines<TO_WRITE>(cpu, info, address, site);
    const Words words = ((1u << ((site.bytes + 3) >> 2)) - 1) << (offset >> 2);
    access_line<TO_WRITE>(cpu, info, address, words & 0xffff, site);
}

template <bool STORE, bool TO_WRITE>
void on_access(unsigned number, qemu_plugin_meminfo_t info, uint64_t address, void* data) {
    Vcpu& cpu = *vcpus[number];
    if (cpu.counting) access<STORE, TO_WRITE>(cpu, info, address, *static_cast<Site*>(data));
}

// Reads the address to return to, where the call that is awaited had put it.
void on_return(unsigned number, qemu_plugin_meminfo_t info, uint64_t address, void* data) {
    on_access<false, false>(number, info, address, data);
    if (Vcpu& cpu = *vcpus[number]; address == cpu.awaited) [[unlikely]]
        end_call(cpu);
}

}  // namespace

// An atomic instruction asks for the line to write when it reads.
void watch_accesses(qemu_plugin_insn* instruction, Site& site, Access kind) {
    const auto loaded = kind == Access::RETURN   ? on_return
                        : kind == Access::ATOMIC ? on_access<false, true>
                                                 : on_access<false, false>;
    const auto usual = settings.stacks ? QEMU_PLUGIN_CB_R_REGS : QEMU_PLUGIN_CB_NO_REGS;
    const auto to_load = kind == Access::RETURN ? QEMU_PLUGIN_CB_R_REGS : usual;
    qemu_plugin_register_vcpu_mem_cb(instruction, loaded, to_load, QEMU_PLUGIN_MEM_R, &site);
    qemu_plugin_register_vcpu_mem_cb(instruction, on_access<true, true>, usual, QEMU_PLUGIN_MEM_W, &site);
}

}  // namespace scope

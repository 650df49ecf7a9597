// SPDX-License-Identifier: GPL-2.0-or-later
// QEMU's side of numascope: which code is watched, which process and thread a CPU is in, and when counting begins
// and ends. QEMU has a host thread for each CPU (with tcg,thread=single its plugins would not learn which CPU is
// meant); of those that are in user mode one runs at a time, and it alone touches what is counted.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "instructions.h"
#include "qemu_plugin.h"
#include "report.h"
#include "scope_markers.h"
#include "turns.h"
#include "vcpu.h"

#define SCOPE_EXPORT extern "C" __attribute__((visibility("default")))

SCOPE_EXPORT int qemu_plugin_version;
int qemu_plugin_version = 4;

namespace scope {
namespace {

constexpr uint64_t KERNEL_HALF = uint64_t{1} << 63;
constexpr uint64_t DIRECT_MAP = 0xffff888000000000;  // of all memory, in a kernel that is told nokaslr and no5lvl
constexpr unsigned BLOCKS_OF_BOARD = 1024;

Settings settings;
std::unique_ptr<Caches> caches;
std::vector<std::unique_ptr<Vcpu>> vcpus;
Totals totals;
uint32_t unsampled;  // bits of a line's number that are zero in the sets that are looked at

qemu_plugin_scoreboard* ticks;
std::deque<Block> blocks;
qemu_plugin_scoreboard* board;
std::mutex translating;  // for what on_translation makes: several CPUs may be at it
Turns turns;

// Where we are: a launcher has said what comes, the program runs, it is in the window.
std::atomic<bool> armed;
bool opened, cleared;
uint64_t launcher, child, program, main_address, run;
std::unordered_set<uint64_t> mains;
std::unordered_map<uint64_t, Thread*> threads;  // by what their FS register points to
std::chrono::steady_clock::time_point since;
double seconds, cpu_seconds, cpu_since;
std::string maps;

uint64_t read(Vcpu& cpu, qemu_plugin_register* Registers::*name) {
    g_byte_array_set_size(cpu.bytes, 0);
    uint64_t value = 0;
    const int size = qemu_plugin_read_register(cpu.registers.*name, cpu.bytes);
    if (size > 0) memcpy(&value, cpu.bytes->data, std::min(static_cast<size_t>(size), sizeof value));
    return value;
}

uint64_t read_physical(Vcpu& cpu, uint64_t address) {
    uint64_t value = 0;
    g_byte_array_set_size(cpu.bytes, sizeof value);
    if (qemu_plugin_read_memory_vaddr(DIRECT_MAP + address, cpu.bytes, sizeof value))
        memcpy(&value, cpu.bytes->data, sizeof value);
    return value;
}

Ticks& ticks_of(unsigned cpu) { return *static_cast<Ticks*>(qemu_plugin_scoreboard_find(ticks, cpu)); }
uint64_t& runs_of(const Block& block, unsigned cpu) {
    return static_cast<uint64_t*>(qemu_plugin_scoreboard_find(block.board, cpu))[block.index];
}

Who who(Vcpu& cpu, Site& site) {
    return {&totals.cpus[cpu.number], cpu.thread ? &cpu.thread->counts : &totals.nobody, &totals.of(site)};
}

// Hands what the CPU has done to the thread that it is in.
void settle(Vcpu& cpu) {
    Counts& mine = totals.cpus[cpu.number];
    Counts& theirs = cpu.thread ? cpu.thread->counts : totals.nobody;
    for (Counts* counts : {&mine, &theirs}) {
        counts->instructions += cpu.instructions;
        counts->loads += cpu.loads;
        counts->stores += cpu.stores;
    }
    if (cpu.thread) cpu.thread->instructions_on[settings.topology.node_of_cpu[cpu.number]] += cpu.instructions;
    cpu.instructions = cpu.loads = cpu.stores = 0;
}

void collect(Vcpu& cpu) {
    Ticks& words = ticks_of(cpu.number);
    const uint64_t instructions = (words.events & (KERNEL - 1)) - cpu.awake;
    cpu.awake = 0;
    cpu.turn += instructions;
    if (cpu.counting) cpu.instructions += instructions;
    words.events &= ~(KERNEL - 1);
}

bool is_watched(const Vcpu& cpu) { return opened && cpu.process == program; }

// Of the emulator; on a busy host the time by the clock says little.
double cpu_time() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// What ran since it was asked last.
uint64_t take_runs(Block& block) {
    uint64_t runs = 0;
    for (auto& cpu : vcpus) runs += std::exchange(runs_of(block, cpu->number), 0);
    return runs * block.instructions.size() - std::exchange(block.undone, 0);
}

void set_open(Vcpu& here, bool open) {
    collect(here);
    settle(here);
    {
        const std::lock_guard lock(translating);
        for (Block& block : blocks) {
            const uint64_t instructions = take_runs(block);
            if (open && !cleared) block.counted = 0;
            else if (opened) block.counted += instructions;
        }
    }
    if (open && !cleared) {
        cleared = true;
        caches->clear();
        threads.clear();
        const std::lock_guard lock(translating);
        totals.clear();
        for (auto& cpu : vcpus) {
            cpu->thread = nullptr;
            cpu->loads = cpu->stores = cpu->instructions = 0;
            cpu->tlb = Tlb(settings.tlb);
            cpu->walker = Walker();
            cpu->l1 = &caches->l1(cpu->number);
        }
        seconds = cpu_seconds = 0;
    }
    const auto now = std::chrono::steady_clock::now();
    const double cpu_now = cpu_time();
    if (opened) seconds += std::chrono::duration<double>(now - since).count(), cpu_seconds += cpu_now - cpu_since;
    since = now;
    cpu_since = cpu_now;
    for (auto& cpu : vcpus) {
        if (!opened) ticks_of(cpu->number).block = 0;  // not counted: a fault in it has nothing to undo
        cpu->counting = open && cpu->process == program;  // those without the turn have nothing left to settle
    }
    opened = open;
}

void set_thread(Vcpu& cpu, uint64_t pointer) {
    Thread*& thread = threads[pointer ^ cpu.process << 1];
    if (!thread) {
        // A program's first thread has no pointer before its C library gives it one.
        auto first = threads.find(cpu.process << 1);
        if (pointer && first != threads.end() && first->second) thread = first->second, first->second = nullptr;
        else thread = &totals.threads.emplace_back();
    }
    cpu.thread = thread;
}

// A page fault: the instructions from it on were counted with their block, but come again. The page that was
// missed may be another one now.
void undo_fault(Vcpu& cpu, uint64_t at) {
    const uint64_t address = read(cpu, &Registers::cr2);
    const bool changed = address != cpu.fault;
    cpu.fault = address;
    auto* const block = reinterpret_cast<Block*>(ticks_of(cpu.number).block);
    if (!block || !cpu.counting) return;
    if (at >= block->start && at < block->end && (at > block->start || changed)) {
        uint64_t undone = 0;
        for (const uint64_t instruction : block->instructions) undone += instruction >= at;
        block->undone += undone;
        cpu.instructions -= undone;
    } else if (!changed) {
        return;
    }
    cpu.tlb.forget(address);
    caches->forget_page(cpu.number, address);
}

void enter_user(Vcpu& cpu, uint64_t at) {
    undo_fault(cpu, at);
    const uint64_t process = read(cpu, &Registers::cr3) & ~uint64_t{0xfff};
    settle(cpu);
    cpu.process = process;
    const bool from_first = settings.window == Window::WHOLE || (settings.window == Window::MAIN && !main_address);
    if (armed && !program && from_first && process != launcher && process != child) {
        program = process;
        set_open(cpu, true);
    }
    cpu.counting = is_watched(cpu);
    if (cpu.counting) set_thread(cpu, read(cpu, &Registers::fs_base));
}

// Waits for the CPU's turn; without it nothing is counted, and the next block asks again.
bool take_turn(Vcpu& cpu) {
    Ticks& words = ticks_of(cpu.number);
    words.turn = turns.take(cpu.number);
    if (words.turn) return true;
    cpu.counting = false;
    words.events |= KERNEL;
    return false;
}

void give_turn(Vcpu& cpu) {
    collect(cpu);
    settle(cpu);
    ticks_of(cpu.number).turn = 0;
    cpu.turn = 0;
    turns.give();
}

void on_event_at(Vcpu& cpu, uint64_t at) {
    Ticks& words = ticks_of(cpu.number);
    const bool from_kernel = words.events >= KERNEL;
    collect(cpu);
    words.events = 0;
    if (cpu.turn >= settings.quantum && words.turn) {
        if (turns.wanted()) {
            give_turn(cpu);
            if (!take_turn(cpu)) return;
        }
        cpu.turn = 0;
    }
    if (!from_kernel) return;
    if (!words.turn && armed && !take_turn(cpu)) return;
    enter_user(cpu, at);
}

// In user mode, where the CPU comes from the kernel or has done as many instructions as it may in a turn; and at each
// block of another process, which may be the program's child and run the same code: its blocks count for nobody.
void on_event(unsigned number, void* data) {
    Vcpu& cpu = *vcpus[number];
    Block& block = *static_cast<Block*>(data);
    on_event_at(cpu, block.start);
    if (!opened || cpu.counting) return;
    --runs_of(block, number);
    Ticks& words = ticks_of(number);
    if (words.events >= KERNEL) return;
    cpu.awake = settings.quantum;
    words.events += cpu.awake;
}

// In the kernel's mode, with the turn still taken.
void on_leave(unsigned number, void*) { give_turn(*vcpus[number]); }

// Whoever spins for another CPU lets it run.
void on_pause(unsigned number, void*) {
    Vcpu& cpu = *vcpus[number];
    if (!ticks_of(number).turn) return;
    if (!turns.wanted()) {
        sched_yield();
        return;
    }
    give_turn(cpu);
    take_turn(cpu);
}

void on_kernel_pause(unsigned, void*) { sched_yield(); }

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
    if (cpu.l1->hit<STORE>(line, words) || line & unsampled) return;
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

void write_report(int status) {
    caches->settle();
    const std::lock_guard lock(translating);
    std::vector<Executed> executed;
    for (const Block& block : blocks)
        if (block.counted) executed.push_back({block.start, block.counted});
    const std::string text = json(settings, totals, executed, *caches, {run, status, seconds, cpu_seconds, maps});
    FILE* const file = fopen(settings.out.c_str(), "a");
    if (!file || fwrite(text.data(), 1, text.size(), file) != text.size() || fclose(file))
        fprintf(stderr, "numascope: %s cannot be written\n", settings.out.c_str());
}

void on_marker(unsigned number, void* data) {
    Vcpu& cpu = *vcpus[number];
    const uint64_t first = read(cpu, &Registers::rdi), second = read(cpu, &Registers::rsi);
    switch (reinterpret_cast<uintptr_t>(data)) {
    case SCOPE_MARK_LAUNCHER:
        launcher = cpu.process;
        break;
    case SCOPE_MARK_ARM: {
        const std::lock_guard lock(translating);
        child = cpu.process;
        program = 0;
        main_address = first;
        run = second;
        mains.insert(first);
        opened = cleared = false;
        maps.clear();
        armed = true;
        break;
    }
    case SCOPE_MARK_START:
        if (settings.window == Window::MARKERS && armed && (!program || program == cpu.process)) {
            program = cpu.process;
            set_open(cpu, true);
            set_thread(cpu, read(cpu, &Registers::fs_base));
        }
        break;
    case SCOPE_MARK_STOP:
        if (cpu.counting && settings.window == Window::MARKERS) set_open(cpu, false);
        break;
    case SCOPE_MARK_MAPS:
        g_byte_array_set_size(cpu.bytes, static_cast<unsigned>(second));
        if (second && qemu_plugin_read_memory_vaddr(first, cpu.bytes, second))
            maps.assign(reinterpret_cast<char*>(cpu.bytes->data), second);
        break;
    case SCOPE_MARK_END:
        if (!armed) break;
        set_open(cpu, false);
        write_report(static_cast<int>(first));
        armed = false;
        break;
    }
}

void on_main(unsigned number, void* data) {
    Vcpu& cpu = *vcpus[number];
    if (!armed || program || settings.window != Window::MAIN || static_cast<Site*>(data)->address != main_address) return;
    program = cpu.process;
    set_open(cpu, true);
    set_thread(cpu, read(cpu, &Registers::fs_base));
}

// A thread that ends leaves its place in memory to one that is another thread.
void on_system_call(unsigned number, void*) {
    Vcpu& cpu = *vcpus[number];
    constexpr uint64_t EXIT = 60;
    if (cpu.counting && read(cpu, &Registers::rax) == EXIT) threads.erase(read(cpu, &Registers::fs_base) ^ cpu.process << 1);
}

void watch(qemu_plugin_insn* instruction) {
    const uint64_t address = qemu_plugin_insn_vaddr(instruction);
    Site& site = totals.sites[address];
    site.address = address;
    uint8_t code[LONGEST_INSTRUCTION];
    const size_t size = qemu_plugin_insn_data(instruction, code, sizeof code);
    const auto loaded = is_atomic(code, size) ? on_access<false, true> : on_access<false, false>;
    qemu_plugin_register_vcpu_mem_cb(instruction, loaded, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_R, &site);
    qemu_plugin_register_vcpu_mem_cb(instruction, on_access<true, true>, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, &site);
    const auto call = [&](qemu_plugin_vcpu_udata_cb_t what, void* data) {
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, what, QEMU_PLUGIN_CB_R_REGS, data);
    };
    if (mains.contains(address)) call(on_main, &site);
    if (is_system_call(code, size)) call(on_system_call, nullptr);
    if (is_pause(code, size)) call(on_pause, nullptr);
    if (const uint32_t what = marker(code, size)) call(on_marker, reinterpret_cast<void*>(uintptr_t{what}));
}

Block& new_block(qemu_plugin_tb* tb, size_t count) {
    Block& block = blocks.emplace_back();
    block.start = qemu_plugin_tb_vaddr(tb);
    for (size_t index = 0; index < count; ++index)
        block.instructions.push_back(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, index)));
    block.end = block.instructions.back() + qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, count - 1));
    block.index = static_cast<unsigned>((blocks.size() - 1) % BLOCKS_OF_BOARD);
    if (block.index == 0) board = qemu_plugin_scoreboard_new(BLOCKS_OF_BOARD * sizeof(uint64_t));
    block.board = board;
    return block;
}

// The kernel is not watched, but for where it is entered, and where it spins.
void translate_kernel(qemu_plugin_tb* tb, size_t count) {
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_leave, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_COND_NE,
                                              {ticks, offsetof(Ticks, turn)}, 0, nullptr);
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, {ticks, offsetof(Ticks, events)}, KERNEL);
    for (size_t index = 0; index < count; ++index) {
        qemu_plugin_insn* const instruction = qemu_plugin_tb_get_insn(tb, index);
        uint8_t code[2];
        const size_t size = qemu_plugin_insn_size(instruction);
        if (size == sizeof code && qemu_plugin_insn_data(instruction, code, size) == size && is_pause(code, size))
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_kernel_pause, QEMU_PLUGIN_CB_NO_REGS, nullptr);
    }
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* tb) {
    const size_t count = qemu_plugin_tb_n_insns(tb);
    if (qemu_plugin_tb_vaddr(tb) & KERNEL_HALF) return translate_kernel(tb, count);
    const std::lock_guard lock(translating);
    Block& block = new_block(tb, count);
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_event, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_COND_GE,
                                              {ticks, offsetof(Ticks, events)}, settings.quantum, &block);
    const auto inlined = [&](qemu_plugin_op what, qemu_plugin_scoreboard* to, size_t offset, uint64_t number) {
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, what, {to, offset}, number);
    };
    inlined(QEMU_PLUGIN_INLINE_ADD_U64, ticks, offsetof(Ticks, events), count);
    inlined(QEMU_PLUGIN_INLINE_STORE_U64, ticks, offsetof(Ticks, block), reinterpret_cast<uintptr_t>(&block));
    inlined(QEMU_PLUGIN_INLINE_ADD_U64, block.board, block.index * sizeof(uint64_t), 1);
    for (size_t index = 0; index < count; ++index) watch(qemu_plugin_tb_get_insn(tb, index));
}

void on_vcpu(qemu_plugin_id_t, unsigned number) {
    while (vcpus.size() <= number) vcpus.push_back(nullptr);
    vcpus[number] = std::make_unique<Vcpu>(number, settings.tlb);
    vcpus[number]->l1 = &caches->l1(number);
    GArray* const registers = qemu_plugin_get_registers();
    const struct {
        const char* name;
        qemu_plugin_register* Registers::*handle;
    } wanted[] = {{"rax", &Registers::rax}, {"rdi", &Registers::rdi}, {"rsi", &Registers::rsi},
                  {"cr2", &Registers::cr2}, {"cr3", &Registers::cr3}, {"fs_base", &Registers::fs_base}};
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
    if (const std::string fault = read_settings(count, arguments, settings); !fault.empty()) return refuse(fault.c_str());
    caches = std::make_unique<Caches>(settings.topology, settings.caches);
    if (!caches->valid()) return refuse("there is no address space for the directory of cache lines");
    totals.cpus.resize(settings.topology.node_of_cpu.size());
    unsampled = settings.sample - 1;
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

// SPDX-License-Identifier: GPL-2.0-or-later
#include "window.h"

#include <sched.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "blocks.h"
#include "forks.h"
#include "guest.h"
#include "scope_markers.h"
#include "turns.h"

namespace scope {
namespace {

Turns turns;

// Where we are: a launcher has said what comes, the program runs, it is in the window.
std::atomic<bool> armed;
bool opened, cleared;
uint64_t launcher, child, program, main_address, run;
std::unordered_set<uint64_t> mains;
std::unordered_map<uint64_t, Thread*> threads;  // by what their FS register points to

struct Task {
    uint64_t process;
    Thread* thread;
};
Forks forks;
std::mutex of_tasks;                       // and of forks
std::unordered_map<uint64_t, Task> tasks;  // the kernel's, by address, as they were last in user mode
std::chrono::steady_clock::time_point since;
double seconds, cpu_seconds, cpu_since;
std::string maps;

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

bool is_program(uint64_t process) {
    if (process == program || !settings.children) return process == program;
    const std::lock_guard lock(of_tasks);
    return forks.is_child(process);
}

// It is the program, or may prove to be when the window opens.
bool is_watched(uint64_t process) {
    return armed && (program ? is_program(process) : process != launcher && process != child);
}

// Virtual addresses mean nothing in another process.
void change_cached(Vcpu& cpu) {
    if (!settings.children || cpu.cached == cpu.process) return;
    cpu.cached = cpu.process;
    caches->forget_all(cpu.number);
    cpu.tlb = Tlb(settings.tlb);
    cpu.walker = Walker();
}

// Before anything of it is counted.
void see_child(Vcpu& cpu, uint64_t at) {
    const uint64_t process = read(cpu, &Registers::cr3) & ~uint64_t{0xfff};
    if (!program || process == program) return;
    const uint64_t pointer = read(cpu, &Registers::fs_base), result = read(cpu, &Registers::rax);
    const std::lock_guard lock(of_tasks);
    if (!forks.is_child(process)) forks.see(process, at, pointer, result);
}

// Of the emulator; on a busy host the time by the clock says little.
double cpu_time() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void set_thread(Vcpu& cpu, Thread* thread) {
    cpu.thread = thread;
    cpu.awaited = thread ? thread->calls.awaited() : 0;
}

void set_open(Vcpu& here, bool open) {
    collect(here);
    settle(here);
    close_blocks(opened, open && !cleared);
    if (open && !cleared) {
        cleared = true;
        caches->clear();
        const std::lock_guard lock(translating);
        totals.clear();
        for (auto& cpu : vcpus) {
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
        const bool ours = is_program(cpu->process);
        if (!ours) set_thread(*cpu, nullptr);
        cpu->counting = open && ours;  // those without the turn have nothing left to settle
    }
    opened = open;
}

void find_thread(Vcpu& cpu, uint64_t pointer) {
    Thread*& thread = threads[pointer ^ cpu.process << 1];
    if (!thread) {
        // A program's first thread has no pointer before its C library gives it one.
        auto first = threads.find(cpu.process << 1);
        if (pointer && first != threads.end() && first->second) thread = first->second, first->second = nullptr;
        else {
            thread = &totals.threads.emplace_back();
            thread->number = static_cast<unsigned>(totals.threads.size());
        }
    }
    set_thread(cpu, thread);
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
    cpu.counting = opened && is_program(process);
    if (cpu.counting) change_cached(cpu);
    if (is_watched(process)) find_thread(cpu, read(cpu, &Registers::fs_base));
    else set_thread(cpu, nullptr);
    if (!settings.kernel) return;
    const std::lock_guard lock(of_tasks);
    tasks[cpu.task] = {process, cpu.thread};
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
    if (!words.turn && armed) {
        if (settings.children) see_child(cpu, at);
        if (!take_turn(cpu)) return;
    }
    enter_user(cpu, at);
}

void write_report(int status) {
    caches->settle();
    const std::vector<Executed> ran = executed();
    const std::lock_guard lock(translating);
    const std::string text = json(settings, totals, ran, *caches, {run, status, seconds, cpu_seconds, maps});
    FILE* const file = fopen(settings.out.c_str(), "a");
    if (!file || fwrite(text.data(), 1, text.size(), file) != text.size() || fclose(file))
        fprintf(stderr, "numascope: %s cannot be written\n", settings.out.c_str());
}

}  // namespace

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

void on_leave(unsigned number, void*) { give_turn(*vcpus[number]); }

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

void on_kernel_pause(unsigned number, void*) {
    if (ticks_of(number).turn) on_pause(number, nullptr);
    else sched_yield();
}

void on_kernel_block(unsigned number, void* data) {
    Vcpu& cpu = *vcpus[number];
    if (!cpu.counting) return give_turn(cpu);
    Block& block = *static_cast<Block*>(data);
    const uint64_t instructions = block.instructions.size();
    block.counted += instructions;
    cpu.instructions += instructions;
    cpu.turn += instructions;
    if (cpu.turn < settings.quantum) return;
    if (turns.wanted()) {
        give_turn(cpu);
        take_turn(cpu);
    }
    cpu.turn = 0;
}

void on_task_switch(unsigned number, void*) {
    Vcpu& cpu = *vcpus[number];
    cpu.task = read(cpu, &Registers::rsi);
    if (ticks_of(number).turn) give_turn(cpu);
    cpu.counting = false;
    cpu.process = 0;
    if (!armed) return;
    Task next{};
    {
        const std::lock_guard lock(of_tasks);
        if (const auto found = tasks.find(cpu.task); found != tasks.end()) next = found->second;
    }
    if (!next.thread || !is_program(next.process) || !take_turn(cpu)) return;
    cpu.process = next.process;
    cpu.counting = opened;
    if (opened) change_cached(cpu);
    set_thread(cpu, next.thread);
}

void on_marker(unsigned number, void* data) {
    Vcpu& cpu = *vcpus[number];
    const uint64_t first = read(cpu, &Registers::rdi), second = read(cpu, &Registers::rsi);
    switch (reinterpret_cast<uintptr_t>(data)) {
        case SCOPE_MARK_LAUNCHER: launcher = cpu.process; break;
        case SCOPE_MARK_ARM: {
            const std::lock_guard lock(translating);
            child = cpu.process;
            program = 0;
            main_address = first;
            run = second;
            mains.insert(first);
            opened = cleared = false;
            maps.clear();
            threads.clear();
            totals.threads.clear();
            objects.clear();
            {
                const std::lock_guard tasks_too(of_tasks);
                tasks.clear();
                forks.clear();
            }
            for (auto& one : vcpus) set_thread(*one, nullptr);
            armed = true;
            break;
        }
        case SCOPE_MARK_START:
            if (settings.window == Window::MARKERS && armed && (!program || program == cpu.process)) {
                program = cpu.process;
                set_open(cpu, true);
                find_thread(cpu, read(cpu, &Registers::fs_base));
            }
            break;
        case SCOPE_MARK_STOP:
            if (cpu.counting && settings.window == Window::MARKERS && cpu.process == program) set_open(cpu, false);
            break;
        case SCOPE_MARK_MAPS:
            g_byte_array_set_size(cpu.bytes, static_cast<unsigned>(second));
            if (second && qemu_plugin_read_memory_vaddr(first, cpu.bytes, second))
                maps.assign(reinterpret_cast<char*>(cpu.bytes->data), second);
            break;
        case SCOPE_MARK_END:
            if (!armed) break;
            set_open(cpu, false);
            if (cleared) write_report(static_cast<int>(first));
            armed = false;
            break;
    }
}

void on_main(unsigned number, void* data) {
    Vcpu& cpu = *vcpus[number];
    if (!armed || program || settings.window != Window::MAIN || static_cast<Site*>(data)->address != main_address)
        return;
    program = cpu.process;
    set_open(cpu, true);
    find_thread(cpu, read(cpu, &Registers::fs_base));
}

void on_system_call(unsigned number, void* data) {
    Vcpu& cpu = *vcpus[number];
    if (!cpu.thread) return;
    enum : uint64_t { CLONE = 56, FORK = 57, EXECVE = 59, EXIT = 60, EXIT_GROUP = 231, EXECVEAT = 322, CLONE3 = 435 };
    constexpr uint64_t SAME_MEMORY = 0x100, BYTES = 2;
    const uint64_t call = read(cpu, &Registers::rax), pointer = read(cpu, &Registers::fs_base);
    if (call == EXIT) threads.erase(pointer ^ cpu.process << 1);
    if (!settings.children) return;
    const std::lock_guard lock(of_tasks);
    if (call == CLONE || call == FORK || call == CLONE3) {
        uint64_t flags = call == FORK ? 0 : read(cpu, &Registers::rdi);
        if (call == CLONE3) flags = read_word(cpu, flags);
        if (!(flags & SAME_MEMORY)) forks.begin(static_cast<Site*>(data)->address + BYTES, pointer);
    } else if (forks.is_child(cpu.process) && (call == EXECVE || call == EXECVEAT || call == EXIT_GROUP)) {
        forks.end(cpu.process);
        collect(cpu);
        settle(cpu);
        cpu.counting = false;
    }
}

bool is_main(uint64_t address) { return mains.contains(address); }

}  // namespace scope

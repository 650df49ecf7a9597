// SPDX-License-Identifier: GPL-2.0-or-later
// When counting begins and ends, and which process and thread a CPU is in. Of the CPUs that are in user mode one runs
// at a time. Each of these is called by translated code, on the CPU of that number.
#pragma once
#include <cstdint>

namespace scope {

// `block`: the Block that begins. In user mode, where the CPU comes from the kernel or has done as many instructions as
// it may in a turn; and at each block of another process, which may be the program's child and run the same code: its
// blocks count for nobody.
void on_event(unsigned cpu, void* block);
// In the kernel's mode, with the turn still taken.
void on_leave(unsigned cpu, void*);
// The same where the kernel is counted too. `block`: the Block that begins. The CPU keeps the turn while it is in a
// task of the program.
void on_kernel_block(unsigned cpu, void* block);
// It goes to another task.
void on_task_switch(unsigned cpu, void*);
// Whoever spins for another CPU lets it run.
void on_pause(unsigned cpu, void*);
void on_kernel_pause(unsigned cpu, void*);
// `what`: one of scope_markers.h.
void on_marker(unsigned cpu, void* what);
// `site`: where a main begins; the program's, if it is the right one.
void on_main(unsigned cpu, void* site);
bool is_main(uint64_t address);
// A thread that ends leaves its place in memory to one that is another thread; and processes begin and end.
// `site`: the instruction.
void on_system_call(unsigned cpu, void* site);

}  // namespace scope

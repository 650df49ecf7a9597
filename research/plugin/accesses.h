// SPDX-License-Identifier: GPL-2.0-or-later
// What an instruction of the program does to memory, through the CPU's TLBs and caches.
#pragma once
#include "qemu_plugin.h"
#include "report.h"

namespace scope {

enum class Access { PLAIN, ATOMIC, RETURN };  // the last: from a call that may be an allocator's

void watch_accesses(qemu_plugin_insn* instruction, Site& site, Access kind);

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
// What an instruction of the program does to memory, through the CPU's TLBs and caches.
#pragma once
#include "qemu_plugin.h"
#include "report.h"

namespace scope {

// `atomic`: it asks for the line to write when it reads.
void watch_accesses(qemu_plugin_insn* instruction, Site& site, bool atomic);

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
// Watches the calls of the allocator, from where a function begins to where it returns.
#pragma once
#include "guest.h"

namespace scope {

// A block may be the beginning of one of the functions that settings name.
void watch_calls(qemu_plugin_tb* tb);
// The call that the CPU's thread awaits has come to its end.
void end_call(Vcpu& cpu);

}  // namespace scope

// SPDX-License-Identifier: GPL-2.0-or-later
// What of the guest's code is watched: decided once, where QEMU translates it.
#pragma once
#include "qemu_plugin.h"

namespace scope {

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* tb);

}  // namespace scope

// Which nodes the player's library has.
#pragma once

namespace fuzz {

// The machine has four nodes itself, as a virtual one may: they are taken as they are, and its kernel places the memory.
bool machine_has_the_nodes();

}  // namespace fuzz

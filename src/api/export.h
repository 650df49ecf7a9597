// Marks exported symbols. symbols.def and binding_symbols.def list their names, and generate the linker's version
// scripts. The tests compare the result with a golden list.
#pragma once

#define NUMALLOC_EXPORT __attribute__((visibility("default")))

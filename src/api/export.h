// What the library shows to the outside. The names are listed in symbols.def and
// binding_symbols.def, from which the linker's version scripts are made; the tests hold the result against a golden
// list.
#pragma once

#define NUMALLOC_EXPORT __attribute__((visibility("default")))

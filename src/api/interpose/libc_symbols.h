// Changes the entries for malloc in libc's symbol table, for all who search libc and not the program.
#pragma once

namespace numalloc::api {

// Makes the entries for malloc and its family in libc's table of dynamic symbols lead to the program's functions. From
// then on a look-up in libc finds these. Returns false if that is impossible (the table lies in one segment with code,
// or the kernel refuses). Thread-safe.
bool libc_symbols_lead_to_ours();

}  // namespace numalloc::api

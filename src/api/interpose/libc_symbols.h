// What libc's symbol table says of malloc.
#pragma once

namespace numalloc::api {

// From now on whoever finds malloc and its family in libc finds what the program itself has: the entries of libc's
// table of dynamic symbols lead there. false where that cannot be had (the table lies in one segment with code, or
// the kernel refuses), or another thread is at it. Done once. Thread-safe.
bool libc_symbols_lead_to_ours();

}  // namespace numalloc::api

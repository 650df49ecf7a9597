// Functions of the vDSO, the page that the kernel maps into every process: they answer without a system call.
#pragma once

namespace numalloc::os {

// The function of that name; nullptr if the vDSO has none, or there is no vDSO (valgrind, vdso=0). Takes no lock, calls
// getauxval(), keeps errno.
void* vdso_function(const char* name);

}  // namespace numalloc::os

// Whether the process contains Go's runtime.
#pragma once

namespace numalloc::os {

// Looks for the note that Go's linker leaves in each program and library, in those that are loaded now. Go starts
// children by system calls of its own, which nobody can intercept: they would inherit a thread's binding.
bool has_go_runtime();

}  // namespace numalloc::os

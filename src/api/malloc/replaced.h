// Whether the process has functions of its own under numalloc's names.
#pragma once

namespace numalloc::api {

// libstdc++'s operators call each other, malloc and free by name (new[] calls new, which calls malloc), so a program
// that replaces one changes those that call it. Ours do so too if this returns true: one of the names that they call is
// not bound to numalloc, or the library has stepped aside. The answer is the same from the first call to the last.
bool operators_replaced();
// Whether the aligned forms then call posix_memalign, as libstdc++'s do since gcc 14, and not aligned_alloc, as before:
// the program has the former and not the latter.
bool aligned_by_posix_memalign();

}  // namespace numalloc::api

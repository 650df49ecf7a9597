// free's slow path, from locating the pointer on.
#pragma once

#include "heap/thread/hot.h"

namespace numalloc {

// Frees an object that push() did not, for the reason `why`. `call` names the program's call in the message that ends
// the program if no object in use begins at `p`. The caller is inside the fork gate; `heap` may be &no_heap.
void free_object(ThreadHeap* heap, void* p, Pushed why, const char* call);

// The same for an object that the caller has located.
void free_located(ThreadHeap* heap, Location at, void* p, Pushed why, const char* call);

}  // namespace numalloc

#include "heap/thread/thread_heap.h"

namespace numalloc {

constinit Object end_of_list{};
constinit ThreadHeap no_heap;
NUMALLOC_THREAD_LOCAL ThreadHeap* this_thread_heap = &no_heap;
NUMALLOC_THREAD_LOCAL ThreadHeap* this_thread_operators = &no_heap;
NUMALLOC_THREAD_LOCAL ThreadHeap* attached_heap = &no_heap;
constinit bool operators_have_heap = false;

}  // namespace numalloc

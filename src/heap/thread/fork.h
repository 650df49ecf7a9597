// fork() in a threaded program: the child gets one thread and a copy of everything. So no other thread may hold a
// lock at that moment: os/fork_gate.h. Between prepare and the other two the calling thread may allocate.
#pragma once

namespace numalloc {

void heap_fork_prepare();
void heap_fork_parent();
void heap_fork_child();

}  // namespace numalloc

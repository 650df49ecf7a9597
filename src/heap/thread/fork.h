// The heap's fork handlers, called by those of api/. The child gets one thread and a copy of everything, so no other
// thread may hold a lock during the fork: os/fork_gate.h. Between prepare and the others the caller may allocate.
#pragma once

namespace numalloc {

void heap_fork_prepare();
void heap_fork_parent();
void heap_fork_child();

}  // namespace numalloc

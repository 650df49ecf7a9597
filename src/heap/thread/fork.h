// fork() in a threaded program: the child gets one thread and a copy of every lock. So the
// parent takes all locks first, by rank, and both sides release them.
#pragma once

namespace numalloc {

void heap_fork_prepare();
void heap_fork_parent();
void heap_fork_child();

}  // namespace numalloc

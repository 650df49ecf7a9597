// The heap's fork handlers, called by those of api/. The child gets one thread and a copy of everything, so during the
// fork no other thread may be in the middle of a change under a lock of the heap: os/fork_gate.h. Between prepare and
// the others the caller may allocate.
#pragma once

namespace numalloc {

void heap_fork_prepare();
// For a child for which libc calls no handler (_Fork, clone). Its creator may be in a signal handler, and may have
// stopped other threads, so this waits for 1/4 s at most. Returns false, with nothing changed, if a thread stayed
// inside, if the caller interrupted the heap, or if it is such a child itself or one between vfork and exec. The child
// must not use the heap then.
bool heap_fork_prepare_briefly();
void heap_fork_parent();
void heap_fork_child();

}  // namespace numalloc

// The heap profile of the process: begun with the heap, written when the process ends. And what else needs stacks.
#pragma once

namespace numalloc::api {

// As the options say; before the first thread has its heap.
void start_profile();
// The option `guarded`, which needs stacks as well.
void start_guarded();
// The option `backtrace`, likewise.
void start_backtraces();

}  // namespace numalloc::api

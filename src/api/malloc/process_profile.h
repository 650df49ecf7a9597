// Starts the heap profile together with the heap, and writes it when the process ends.
#pragma once

namespace numalloc::api {

// Starts the profile as the options say. Called before the first thread has its heap.
void start_profile();
// The same for the options `guarded` and `backtrace`, which need stacks as well.
void start_guarded();
void start_backtraces();

}  // namespace numalloc::api

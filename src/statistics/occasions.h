// When statistics are written without being asked for: at the end of the program, and on a signal.
#pragma once

namespace numalloc {

// As the options say; once, when the heap works.
void start_statistics();
// The program ends, by exit() or by returning from main().
void end_statistics();
void fork_child_statistics();

}  // namespace numalloc

// Writes statistics as options demand: at the end of the program, on a signal, and into the page (page.h).
#pragma once

namespace numalloc {

// Applies the options. Called once, when the heap works.
void start_statistics();
// Called when the program ends by exit() or by returning from main().
void end_statistics();
void fork_child_statistics();

}  // namespace numalloc

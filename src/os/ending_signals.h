// The signals by which people and systems end programs: SIGINT, SIGTERM, SIGHUP.
#pragma once

namespace numalloc::os {

// From now on `before(signal)` is called first where the program leaves such a signal to the system, and the program
// ends by it when that returns true; else by end_by(). What the program does with these signals afterwards, it does
// instead.
void before_ending_signals(bool (*before)(int signal));

// Ends the process as the signal does.
void end_by(int signal);

}  // namespace numalloc::os

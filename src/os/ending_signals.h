// SIGINT, SIGTERM and SIGHUP: the signals by which users and systems end programs.
#pragma once

namespace numalloc::os {

// Installs a handler for each of these signals whose action is the default. The handler calls `before(signal)`. If that
// returns true the process ends by the signal; otherwise the caller must call end_by() later. A handler that the
// program installs later replaces ours.
void before_ending_signals(bool (*before)(int signal));

// Ends the process by the signal's default action.
void end_by(int signal);

}  // namespace numalloc::os

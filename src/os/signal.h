// Signals that the library takes for itself because its user named one.
#pragma once

namespace numalloc::os {

// Unless the program has a handler already. On the thread's alternative stack where it has one.
void handle_signal(int number, void (*handler)(int));

}  // namespace numalloc::os

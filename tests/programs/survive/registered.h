// What registered.c asks of registered_listener.c.
#pragma once

// Calls that came to the library so far.
unsigned long heard(void);

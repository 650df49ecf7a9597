// Interface of registered_listener.c.
#pragma once

// Number of intercepted calls.
unsigned long heard(void);

// A program without the listener.
#include "registered.h"

unsigned long heard(void) { return 0; }

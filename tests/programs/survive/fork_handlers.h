// What fork_handlers.c asks of fork_handlers_library.c.
#pragma once

// What each handler also calls; NULL for nothing.
void call_beside(void (*function)(void));
// What each handler calls, and nothing else.
void call_alone(void (*function)(void));
// How often a handler was called: 0 prepare, 1 parent, 2 child.
int calls_of(int which);

// A child of fork() with the heap's handlers in place, as pthread_atfork() calls them.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "heap/thread/fork.h"
#include "support/made_up_heap.h"

namespace numalloc::testing {

// The wait status of a child that runs `body`: 0 if that returned true. Its alarm ends a child that hangs on a lock.
template <class Body>
int in_child(Body body) {
    heap_fork_prepare();
    const pid_t child = fork();
    if (child == 0) {
        heap_fork_child();
        alarm(child_limit);
        _exit(body() ? 0 : 1);
    }
    heap_fork_parent();
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

}  // namespace numalloc::testing

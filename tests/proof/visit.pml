/* src/heap/thread/waiting.cpp: a thread that works, waits and ends, and two that visit it: allow_visits(), own_heap() and
 * end_visits() of the one, visit() and give_if_waiting() of the others, with WaitSight::waits() of src/os/waiting.cpp.
 *
 * The lists' owner reads one of two pointers once in each malloc: this_thread_heap, or new's this_thread_operators. What
 * must hold: at most one thread is at work on the lists, and nobody writes to the pointers of a thread that has ended.
 * A thread also sleeps in a handler of a signal that came while it was at work; the kernel then says that a signal is
 * blocked. The look at it is one moment: its processor time says that it did not run meanwhile.
 *
 * Faults made for it: LOOKS_BEFORE, a visitor that does not ask again once the pointers are written; LATE_POINTERS, a
 * write that others see later, for want of a barrier; ONE_POINTER, new's is forgotten; FORGETS_HANDLERS, blocked signals
 * are not asked for; WAKES_ON, own_heap() does not wait for the visitor; GIVES_LATE, the pointers stand again before the
 * lists are done; VISITS_TOGETHER, the lock is not asked for; ENDS_AT_ONCE, end_visits() without the lock; STAYS_WELCOME,
 * a visitor that does not ask whether the thread has ended its visits.
 */
#define VISITORS 2

bool no_heap[2];        /* this_thread_heap, this_thread_operators: is it &no_heap? */
bool visit_held;        /* h->visit */
bool pointers_known;    /* h->pointers */
bool lives = true;      /* the thread-local memory is there */
bool asleep;
bool blocked;           /* in a handler */
byte at_work;

inline lock() { atomic { !visit_held -> visit_held = true } }
inline unlock() { visit_held = false }

inline work() {
    at_work++;
    assert(at_work == 1);
    at_work--
}

/* In a call of libc's that only waits. */
inline sleep() {
    asleep = true;
    asleep = false
}

/* A malloc or free of the fast path may be interrupted between its steps. */
inline work_and_be_interrupted() {
    at_work++;
    assert(at_work == 1);
    if
    :: d_step { blocked = true; asleep = true };
       d_step { asleep = false; blocked = false }
    :: skip
    fi;
    at_work--
}

proctype Owner() {
    byte rounds = 2;
    byte which;
    bool none;
    lock();
    pointers_known = true;
    unlock();
    do
    :: rounds > 0 ->
        rounds--;
        sleep();
        if
        :: which = 0
        :: which = 1
        fi;
        none = no_heap[which];
        if
        :: none ->
#ifndef WAKES_ON
            /* own_heap() looks at the first, whichever sent it here. */
            if
            :: no_heap[0] -> lock(); unlock()
            :: else
            fi;
#endif
            work()
        :: else -> work_and_be_interrupted()
        fi
    :: else -> break
    od;
    /* detach_thread(), while the thread's keys are destroyed. */
#ifndef ENDS_AT_ONCE
    lock();
    pointers_known = false;
    unlock();
#else
    pointers_known = false;
#endif
    work();
    lives = false;
    /* Another thread, which has got its number. */
    sleep()
}

inline point(which, to) {
    assert(lives);
    no_heap[which] = to
}

inline look(waits) {
#ifdef FORGETS_HANDLERS
    waits = asleep
#else
    waits = asleep && !blocked
#endif
}

proctype Visitor() {
    byte visits = 2;
    bool waits;
    bool got;
    do
    :: visits > 0 ->
        visits--;
#ifdef VISITS_TOGETHER
        got = true;
#else
        d_step { got = !visit_held; visit_held = true };
#endif
        if
        :: !got -> goto next
        :: else
        fi;
#ifndef STAYS_WELCOME
        if
        :: !pointers_known -> goto leave
        :: else
        fi;
#endif
        look(waits);
        if
        :: !waits -> goto leave
        :: else
        fi;
#ifdef LATE_POINTERS
        /* Seen by the owner at any time from now on. */
        if
        :: point(0, true); point(1, true)
        :: skip
        fi;
#else
        point(0, true);
#ifndef ONE_POINTER
        point(1, true);
#endif
#endif
#ifndef LOOKS_BEFORE
        look(waits);
#endif
#ifdef GIVES_LATE
        point(1, false);
        point(0, false);
#endif
        if
        :: waits -> work()
        :: else
        fi;
#ifndef GIVES_LATE
        point(1, false);
        point(0, false);
#endif
leave:
#ifndef VISITS_TOGETHER
        unlock();
#endif
next:   skip
    :: else -> break
    od
}

init { atomic { run Owner(); byte i; for (i : 1 .. VISITORS) { run Visitor() } } }

/* src/os/fork_gate.h and lock.h: two threads that take one lock twice each, and one that forks twice.
 *
 * What must hold: at the moment of the clone nobody has changed anything under the lock, at most one thread does so
 * at any time, and everybody gets on in the end.
 *
 * LOOKS_FIRST and FORGETS_MARKS are faults made for it: a thread that looks at the gate before it sets its mark, and
 * a fork that does not wait for the marks.
 */
#define THREADS 2

bool closed;
bool inside[THREADS];
bool held;
byte changing;

inline change() {
    changing++;
    assert(changing == 1);
    changing--
}

proctype Locker(byte me) {
    byte rounds = 2;
    do
    :: rounds > 0 ->
#ifdef LOOKS_FIRST
        !closed;
        inside[me] = true;
        atomic { !held -> held = true };
        change();
        held = false;
        rounds--;
#else
        inside[me] = true;
        /* It may wait for the lock, or see it free. */
        atomic { !held -> held = true };
        if
        :: closed -> held = false; inside[me] = false; !closed
        :: else -> change(); held = false; rounds--
        fi;
#endif
        inside[me] = false
    :: else -> break
    od
}

proctype Forker() {
    byte forks = 2;
    byte i;
    do
    :: forks > 0 ->
        closed = true;
#ifndef FORGETS_MARKS
        i = 0;
        do
        :: i < THREADS -> !inside[i]; i++
        :: else -> break
        od;
#endif
        /* The clone: one moment. */
        assert(changing == 0);
        closed = false;
        forks--
    :: else -> break
    od
}

init { atomic { run Locker(0); run Locker(1); run Forker() } }

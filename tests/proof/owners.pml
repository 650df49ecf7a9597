/* src/heap/thread/attach.cpp: a node with room for one heap, three threads that get it and let go of it, and one that comes
 * later: attach_thread() with take_heap() and find_heaps_of_the_dead(), detach_thread() with give_back(); SlotPool's take()
 * and give() of src/heap/process/node_heap.cpp are one step each, under its lock.
 *
 * A thread may end without a word. Its heap stays in use, and is found by who needs one more and finds that the owner is no
 * more; a new thread may have the number of one that has ended. What must hold: at most one thread has the heap or is at
 * work on it, and a thread that comes when all others have ended gets it, whatever its number.
 * A heap of the dead is not found while another thread lives that has its owner's number: that costs a heap, no more.
 *
 * Faults made for it: EVERYBODY_AT_ONCE, `attaching` is not held; TRUSTS_NOBODY, the owner is not asked for;
 * ASKS_ONCE, not a second time whether the heap is in use, after the owner was found dead; KEEPS_ITS_OWN, a heap with the
 * caller's own number is taken for one whose owner lives; GIVES_EARLY, the heap is given back before the thread is done
 * with it; SIGNS_LATER, the owner's number is written once `attaching` is free again.
 */
#define HEAPS 1
#define NUMBERS 3
#define NOBODY 255

bool attaching;
bool is_free[HEAPS] = true; /* the pool's bit */
bool in_use[HEAPS];
byte number[HEAPS];         /* h->thread */
bool alive[NUMBERS];
byte at_work[HEAPS];
byte ended;

inline work(h) {
    at_work[h]++;
    assert(at_work[h] == 1);
    at_work[h]--
}

/* SlotPool::give() */
inline give(h) {
    d_step {
        assert(in_use[h] && !is_free[h]);
        in_use[h] = false;
        is_free[h] = true
    }
}

/* SlotPool::take() */
inline take(h) {
    d_step {
        h = 0;
        do
        :: h < HEAPS && !is_free[h] -> h++
        :: else -> break
        od;
        if
        :: h == HEAPS -> h = NOBODY
        :: else -> is_free[h] = false
        fi
    }
}

inline find_heaps_of_the_dead(me) {
    i = 0;
    do
    :: i < HEAPS ->
        if
        :: !in_use[i] -> goto next
        :: else
        fi;
#ifndef TRUSTS_NOBODY
#ifdef KEEPS_ITS_OWN
        if
        :: alive[number[i]] -> goto next
        :: else
        fi;
#else
        if
        :: number[i] != me && alive[number[i]] -> goto next
        :: else
        fi;
#endif
#endif
#ifndef ASKS_ONCE
        if
        :: !in_use[i] -> goto next
        :: else
        fi;
#endif
        work(i);
        give(i);
next:   i++
    :: else -> break
    od
}

inline attach(me, h) {
#ifndef EVERYBODY_AT_ONCE
    atomic { !attaching -> attaching = true };
#endif
    if
    :: !is_free[0] -> find_heaps_of_the_dead(me)
    :: else
    fi;
    take(h);
    if
    :: h != NOBODY ->
#ifndef SIGNS_LATER
        number[h] = me;
#endif
        in_use[h] = true
    :: else
    fi;
    attaching = false;
#ifdef SIGNS_LATER
    if
    :: h != NOBODY -> number[h] = me
    :: else
    fi
#endif
}

inline detach(h) {
#ifdef GIVES_EARLY
    give(h);
    work(h)
#else
    work(h);
    give(h)
#endif
}

/* `me`: the kernel's number of it. */
proctype Thread(byte me) {
    byte h;
    byte i;
    byte rounds = 2;
    do
    :: rounds > 0 ->
        rounds--;
        attach(me, h);
        if
        :: h == NOBODY
        :: h != NOBODY -> work(h); detach(h)
        :: h != NOBODY -> work(h); break     /* it ends without a word */
        fi
    :: else -> break
    od;
    atomic { alive[me] = false; ended++ }
}

/* Of the number of a thread that has ended, when all have. */
proctype Last() {
    byte h;
    byte i;
    atomic { ended == NUMBERS -> alive[0] = true };
    attach(0, h);
    assert(h != NOBODY);
    work(h);
    detach(h)
}

init {
    atomic {
        alive[0] = true;
        alive[1] = true;
        alive[2] = true;
        run Thread(0);
        run Thread(1);
        run Thread(2);
        run Last()
    }
}

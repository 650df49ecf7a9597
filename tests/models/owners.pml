/* src/heap/thread/attach.cpp: a node with room for one heap, three threads that get it and let go of it, and one that comes
 * later: attach_thread() with take_heap() and find_heaps_of_the_dead(); detach_thread() with return_slot(), or defer_detach() with
 * release_deferred_heap() by another thread. SlotPool's take() and give() of src/heap/node/slot_pool.cpp are one step each,
 * under its lock; so are the calls of ThreadLife (src/os/thread_life.h) and the kernel's mark at a thread's end.
 *
 * A thread may end without a call of ours. Its heap stays in use, and is found by who needs one more and finds that the owner is
 * no more. What must hold: at most one thread has the heap or is at work on it, and a thread that comes when all others have
 * ended gets it.
 *
 * Faults made for it: TRUSTS_NOBODY, the owner is not asked for; ENDS_LATER, a heap is recorded before its thread has let go of
 * it; ENDS_NEVER, its thread does not let go of a heap that it gives back; GIVES_EARLY, the heap is given back before the thread
 * is done with it.
 */
#define HEAPS 1
#define THREADS 3
#define NOBODY 255
mtype = { FREE, OWNED, DEAD };

bool attaching;
bool is_free[HEAPS] = true; /* the pool's bit */
bool in_use[HEAPS];
mtype life[HEAPS] = FREE;   /* h->owner */
byte owner[HEAPS] = NOBODY;
bool deferred[HEAPS];
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

inline begin(h, me) { d_step { life[h] = OWNED; owner[h] = me } }
inline end(h) { d_step { life[h] = FREE; owner[h] = NOBODY } }

inline find_heaps_of_the_dead() {
    i = 0;
    do
    :: i < HEAPS ->
        if
        :: !in_use[i] -> goto next
        :: else
        fi;
#ifndef TRUSTS_NOBODY
        if
        :: atomic { life[i] == DEAD -> life[i] = FREE }
        :: life[i] != DEAD -> goto next
        fi;
#endif
        work(i);
        give(i);
next:   i++
    :: else -> break
    od
}

inline attach(me, h) {
    atomic { !attaching -> attaching = true };
    if
    :: !is_free[0] -> find_heaps_of_the_dead()
    :: else
    fi;
    take(h);
    if
    :: h != NOBODY ->
        begin(h, me);
        in_use[h] = true
    :: else
    fi;
    attaching = false
}

inline detach(h) {
#ifdef GIVES_EARLY
    end(h);
    give(h);
    work(h)
#else
    work(h);
#ifndef ENDS_NEVER
    end(h);
#endif
    give(h)
#endif
}

inline defer_detach(h) {
#ifdef ENDS_LATER
    deferred[h] = true;
    end(h)
#else
    end(h);
    deferred[h] = true
#endif
}

inline run_deferred() {
    if
    :: atomic { deferred[0] -> deferred[0] = false } ->
        work(0);
        give(0)
    :: !deferred[0]
    fi
}

proctype Thread(byte me) {
    byte h;
    byte i;
    byte rounds = 2;
    do
    :: rounds > 0 ->
        rounds--;
        run_deferred();
        attach(me, h);
        if
        :: h == NOBODY
        :: h != NOBODY -> work(h); detach(h)
        :: h != NOBODY -> work(h); defer_detach(h)
        :: h != NOBODY -> work(h); break     /* it ends without a call */
        fi
    :: else -> break
    od;
    /* The kernel marks what it has not let go of. */
    atomic {
        if
        :: owner[0] == me -> life[0] = DEAD
        :: else -> skip
        fi;
        ended++
    }
}

/* When all have ended. */
proctype Last() {
    byte h;
    byte i;
    ended == THREADS;
    run_deferred();
    attach(THREADS, h);
    assert(h != NOBODY);
    work(h);
    detach(h)
}

init {
    atomic {
        run Thread(0);
        run Thread(1);
        run Thread(2);
        run Last()
    }
}

/* src/heap/central/ring.h: two slots, three threads, every order of their steps.
 *
 * An exchange or compare-and-exchange of a slot is one step; so is each load and store of the hint, and each link
 * of a list. What must hold at the end: each object is in one slot or with one thread, and a slot's count is the
 * length of its list.
 *
 * LOSES_LISTS and LEAVES_LINKS are faults made for it: a join that stores without comparing, and one that fails
 * without taking back its link. tests/models/spin.py sees both found.
 */
#define SLOTS 2
#define OBJECTS 6
#define NONE 0

byte next[OBJECTS + 1];
byte head[SLOTS];
byte count[SLOTS];
byte newest;

byte seen[OBJECTS + 1];
byte running = 3;

/* A list that a thread has at its end. */
inline keep(list) {
    byte o = list;
    do
    :: o != NONE -> seen[o]++; o = next[o]
    :: o == NONE -> break
    od
}

/* `out`, `out_count`: what had to leave. */
inline push(list, n, out, out_count) {
    byte to = newest + 1;
    if
    :: to >= SLOTS -> to = 0
    :: else
    fi;
    newest = to;
    d_step { out = head[to]; out_count = count[to]; head[to] = list; count[to] = n }
}

inline pop(out, out_count) {
    byte from = newest;
    byte k = 0;
    out = NONE;
    out_count = 0;
    do
    :: k < SLOTS ->
        byte slot = (from + SLOTS - k) % SLOTS;
        k++;
        if
        :: head[slot] != NONE ->
            d_step { out = head[slot]; out_count = count[slot]; head[slot] = NONE; count[slot] = 0 };
            if
            :: out != NONE -> newest = (slot + SLOTS - 1) % SLOTS; break
            :: else
            fi
        :: else
        fi
    :: else -> break
    od
}

inline join(list, n, joined) {
    byte place = newest;
    byte old;
    byte old_count;
    joined = false;
    d_step { old = head[place]; old_count = count[place] };
    if
    :: old != NONE ->
        byte last = list;
        do
        :: next[last] != NONE -> last = next[last]
        :: else -> break
        od;
        next[last] = old;
#ifdef LOSES_LISTS
        d_step { head[place] = list; count[place] = old_count + n; joined = true };
#else
        d_step {
            if
            :: head[place] == old && count[place] == old_count ->
                head[place] = list;
                count[place] = old_count + n;
                joined = true
            :: else
            fi
        };
#endif
#ifndef LEAVES_LINKS
        if
        :: !joined -> next[last] = NONE
        :: else
        fi
#endif
    :: else
    fi
}

/* Has 1 -> 2, which it joins to the newest, or pushes. */
proctype Sender() {
    byte out;
    byte out_count;
    bool joined;
    join(1, 2, joined);
    if
    :: !joined -> push(1, 2, out, out_count); keep(out)
    :: else
    fi;
    running--
}

/* Takes the newest and puts it back: the same head and count, but with object 5 for its second. */
proctype Changer() {
    byte list;
    byte n;
    byte out;
    byte out_count;
    pop(list, n);
    if
    :: list != NONE && n == 2 ->
        byte second = next[list];
        next[5] = next[second];
        next[second] = NONE;
        next[list] = 5;
        seen[second]++;
        push(list, n, out, out_count);
        keep(out)
    :: else -> seen[5]++; keep(list)
    fi;
    running--
}

/* Pushes 6, and keeps what it finds. */
proctype Taker() {
    byte list;
    byte n;
    byte out;
    byte out_count;
    push(6, 1, out, out_count);
    pop(list, n);
    keep(out);
    byte o = list;
    do
    :: o != NONE -> seen[o]++; o = next[o]
    :: o == NONE -> break
    od;
    running--
}

init {
    next[1] = 2;
    next[3] = 4;
    head[0] = 3;
    count[0] = 2;
    atomic { run Sender(); run Changer(); run Taker() };
    running == 0;
    byte i = 0;
    byte length;
    byte at;
    d_step {
        do
        :: i < SLOTS ->
            length = 0;
            at = head[i];
            do
            :: at != NONE && length <= OBJECTS -> seen[at]++; length++; at = next[at]
            :: else -> break
            od;
            assert(length == count[i]);
            i++
        :: else -> break
        od;
        i = 1;
        do
        :: i <= OBJECTS -> assert(seen[i] == 1); i++
        :: else -> break
        od
    }
}

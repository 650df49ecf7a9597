/* How a program in the lab's machine speaks to numascope: an instruction that does nothing on any processor, whose
   displacement says what is meant. Arguments are in rdi and rsi. */
#pragma once

#define SCOPE_MARK_LAUNCHER 0x6e756d00 /* "I start programs; count nothing of me" */
#define SCOPE_MARK_ARM                                                                                  \
    0x6e756d01 /* "this process now becomes the program"; its main's address, or 0; the run's number */
#define SCOPE_MARK_START 0x6e756d02 /* with window=markers: count from here ... */
#define SCOPE_MARK_STOP 0x6e756d03  /* ... to here; as often as wanted */
#define SCOPE_MARK_MAPS 0x6e756d04  /* the program's /proc/PID/maps: address and length of the text */
#define SCOPE_MARK_END 0x6e756d05   /* the program has ended; its status */

#define SCOPE_TEXT_OF(x) #x
#define SCOPE_TEXT(x) SCOPE_TEXT_OF(x)
#define SCOPE_MARK(what, first, second)                                                         \
    __asm__ volatile("nopl " SCOPE_TEXT(what) "(%%rax)" : : "D"(first), "S"(second) : "memory")

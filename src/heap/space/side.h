// A small lock-free heap for calls that cannot use the main one:
//
//   - while a fork is in progress (os/fork_gate.h): the caller may hold a lock of libc or of another library that
//     fork() still takes, so malloc must not wait for the end of the fork;
//   - inside a function that replaces one of libc's (os/libc_call.h): the calling thread may hold the heap's own locks.
//
// A program that never forks and has no such function allocates nothing here.
//
//   chunk   | used : 1 bit a slot | slot | slot | ...      mapped on demand, unmapped when its last object is freed
//   slot    | room for alignment | header | object |       all of a chunk are of one size class
//   state   | kind : 32 | open : 1 | live : 31 |           0: the table entry is not used
//
//   kind != 0 from the claim of the entry until its chunk is unmapped: one object's, or a size class's
//   live == number of allocated objects >= number of slots whose bit is set
//   open: the chunk in which its class allocates. A full one is closed; a closed one that is half empty opens again.
//   Exactly one thread makes (open == 0 && live == 0) true; it unmaps the chunk, or keeps it as a spare until the fork
//   is over, or inside a LibcCall leaves it for the next object that it suits, and for trim()
//
// An object that needs more than a quarter of a chunk has its own, which is never open. For these there are four
// spare chunks of up to 4 MiB: a thread may hold the lock for which a fork waits while it allocates and frees such
// objects in a loop, and the fork waits longer if each is mapped and unmapped.
#pragma once

#include "base/bits.h"
#include "base/ids.h"

namespace numalloc::side {

struct Memory {
    void* p = nullptr;
    bool zeroed = false;
};
// `alignment` is a power of two. nullptr without memory, above 32 GiB, or with more than 8,192 chunks.
Memory allocate(Bytes n, Bytes alignment);

// Whether `p` lies in a chunk. Exact for allocated objects.
bool contains(const void* p);
// For a pointer into a chunk: why it is not an allocated object, or nullptr.
const char* why_invalid(const void* p);
// Usable bytes of an allocated object.
Bytes bytes_of(const void* p);
// Ends the program if `p` is not an allocated object; `call` is named in the message.
void free(void* p, const char* call);

// Unmaps the spare chunks, those that were left, and the open ones that have no objects. The others stay open, so that
// a long-lived object does not hold a chunk for each fork.
void trim();

}  // namespace numalloc::side

// Objects for calls that must not wait: while a fork is under way no lock of the heap's can be had (os/fork_gate.h), and
// whoever calls malloc then may hold a lock of libc's or of another library's that the fork is waiting for. Lock-free; a
// program that does not fork has none of them.
//
//   chunk   | header | object | header | object | ...            mapped as needed, unmapped when its last object is freed
//   state   | used, granules : 32 | open : 1 | live : 31 |         0: the entry has no chunk
//
//   used > 0, from the moment that somebody claims the entry until he who unmaps it gives it back
//   live == objects in use; new ones come only while it is open, behind the first `used` granules, which are never used twice
//   unmapped by whoever makes it (not open, live == 0): that happens once
//
// A larger object has a chunk of its own, which is never open.
#pragma once

#include "base/bits.h"
#include "base/ids.h"

namespace numalloc::side {

// Fresh memory, which is zero. `alignment` is a power of two. nullptr with no memory, or with too many chunks.
void* allocate(Bytes n, Bytes alignment);

// Whether `p` lies in a chunk. Exact for objects in use.
bool contains(const void* p);
// Why `p`, which does, is no object in use; nullptr if it is one.
const char* why_invalid(const void* p);
// Of one in use.
Bytes bytes_of(const void* p);
void free(void* p, const char* call);

// The chunk that serves now takes no more: a fork is over.
void close_chunk();

}  // namespace numalloc::side

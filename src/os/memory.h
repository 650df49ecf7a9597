// Address space and pages. Every function is thread-safe, keeps errno, and says failure by its
// result; none retries or reports. Addresses and lengths are multiples of the page size.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// The alignment, in bytes, of memory that may lie on huge pages. The kernel's own may be larger: see below.
constexpr Bytes huge_page = 2 * MiB;

// The kernel's page size: 4 KiB on x86-64; 4, 16 or 64 KiB on aarch64.
Bytes page_size();

// What the kernel calls a huge page, all that one page of its tables spans: 2 MiB with pages of 4 KiB, 32 MiB
// with 16, 512 MiB with 64.
inline Bytes huge_page_size() { return page_size() / 8 * page_size(); }

// Address space without access and without memory behind it: nothing is charged, locked or dumped, and
// nobody else's mapping comes to lie there. `alignment` is a power of two of at least a page. nullptr when refused.
void* hold(Bytes bytes, Bytes alignment);
// The same at a place of our choice; false, and nothing has changed, where something lies there or the
// kernel refuses.
bool hold_at(void* p, Bytes bytes);
// The same of a range that is ours: what was in it is gone.
bool hold_again(void* p, Bytes bytes);

// Makes held space readable and writable; its pages are zero. false when refused (commit
// limit, map count).
bool commit(void* p, Bytes bytes);

enum class Mapped {
    done,
    taken,    // somebody else has a mapping in the range
    refused,  // a limit, or no such address on this machine
};
// Fresh zeroed pages exactly there. Unless `done`, nothing has changed.
Mapped map_at(void* p, Bytes bytes);
// What hold_at() would meet there. Nothing stays mapped.
Mapped try_range(void* p, Bytes bytes);

// Fresh zeroed pages outside of any region, for what must exist before or beside the heap.
void* map(Bytes bytes);
// false when refused (a limit on mappings): then it is as it was.
bool unmap(void* p, Bytes bytes);

// Gives the pages back to the OS; the range stays committed and reads as zero afterwards.
// false when refused: then the contents are unchanged.
bool discard(void* p, Bytes bytes);

// Gives the pages back to the OS, and nobody may touch them before allow_writes(); what they are bound to stays. false
// when refused (a limit on mappings): then the range is as it was. Locked memory keeps its contents.
bool withdraw(void* p, Bytes bytes);

// Puts pages behind the range now, and behind the rest of the pages that it shares with others. false with
// no memory left, or on kernels before 5.14. After a filter (filter.h) true, and nothing has happened.
bool populate(void* p, Bytes bytes);

// Pages of somebody else's mapping that may be read, and those that were withdrawn, become writable; and read-only
// again. false when refused.
bool allow_writes(void* p, Bytes bytes);
bool forbid_writes(void* p, Bytes bytes);

enum class HugePages { system, on, off };
// Advises the kernel on huge pages for the range. Failure means a kernel without them.
void advise_huge(void* p, Bytes bytes, HugePages mode);

}  // namespace numalloc::os

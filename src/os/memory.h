// Address space and pages. Every function is thread-safe, keeps errno, and says failure by its
// result; none retries or reports. Addresses and lengths are multiples of the page size.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

constexpr Bytes huge_page = 2 * MiB;

// The kernel's page size; 4 KiB on x86-64.
Bytes page_size();

// Address space without access and without memory behind it (nothing is charged, locked or
// dumped). `alignment` is a power of two of at least a page. nullptr when refused.
void* reserve(Bytes bytes, Bytes alignment);

// Makes reserved space readable and writable; its pages are zero. false when refused (commit
// limit, map count).
bool commit(void* p, Bytes bytes);

// Makes reserved space readable: it reads as zero and costs no commit charge.
bool commit_read_only(void* p, Bytes bytes);

// Fresh zeroed pages outside of any region, for what must exist before or beside the heap.
void* map(Bytes bytes);
void unmap(void* p, Bytes bytes);

// Gives the pages back to the OS; the range stays committed and reads as zero afterwards.
// false when refused: then the contents are unchanged.
bool discard(void* p, Bytes bytes);

// Puts pages behind the range now. false with no memory left, or on kernels before 5.14.
bool populate(void* p, Bytes bytes);

enum class HugePages { system, on, off };
// Advises the kernel on huge pages for the range. Failure means a kernel without them.
void advise_huge(void* p, Bytes bytes, HugePages mode);

// Bytes of address space that RLIMIT_AS leaves to the process, or ~0 where it sets no limit.
Bytes address_space_left();

}  // namespace numalloc::os

// Address space and pages. Every function is thread-safe, keeps errno, reports failure by its result, and neither
// retries nor prints. Addresses and lengths are multiples of the page size, except for populate().
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// Alignment in bytes of memory that may lie on huge pages. The kernel's huge pages may be larger: huge_page_size().
constexpr Bytes huge_page = 2 * MiB;

// The kernel's page size: 4 KiB on x86-64; 4, 16 or 64 KiB on aarch64.
Bytes page_size();

// The kernel's huge page size in bytes, the span of one page of its tables: 2 MiB with pages of 4 KiB, 32 MiB with 16
// KiB, and 512 MiB with 64 KiB.
inline Bytes huge_page_size() { return page_size() / 8 * page_size(); }

// Reserves address space without access and without memory: it is not charged, locked or dumped, and the kernel places
// no other mapping in it. `alignment` is a power of two of at least a page. nullptr if refused.
void* hold(Bytes bytes, Bytes alignment);
// The same at a fixed address. false, with nothing changed, if the range is not free or the kernel refuses.
bool hold_at(void* p, Bytes bytes);
// The same for a range that is ours, whose contents are lost.
bool hold_again(void* p, Bytes bytes);

// Makes reserved space readable and writable; its pages read as zero. false if refused (commit limit, map count).
bool commit(void* p, Bytes bytes);

enum class Mapped {
    done,
    taken,    // the range overlaps another mapping
    refused,  // a limit, or no such address on this machine
};
// Maps fresh zero pages exactly at `p`. Unless the result is `done`, nothing has changed.
Mapped map_at(void* p, Bytes bytes);
// Whether nothing is mapped there: maps it, and unmaps it again. false also if the kernel refuses that.
bool is_free(void* p, Bytes bytes);

// Where the kernel puts a mapping for which no address is requested: near libraries and stacks. 0 if it refuses.
// Nothing stays mapped.
Address where_the_kernel_maps();

// Maps fresh zero pages outside of all regions, for data that must exist before or beside the heap. nullptr if refused.
void* map(Bytes bytes);
// false if refused (a limit on mappings): then nothing has changed.
bool unmap(void* p, Bytes bytes);
// The same for what nobody else has been given, also while the heap starts.
bool unmap_unused(Address unused, Bytes bytes);

// Returns the pages to the kernel; the range stays committed and reads as zero. false if refused: then the contents are
// unchanged, or, where several mappings make up the range, a part of it reads as zero.
bool discard(void* p, Bytes bytes);

// The same for memory that no program sees, by the system call itself: in the child of a fork, a library that replaces
// madvise() may find its lock held for ever.
bool discard_unseen(void* unseen, Bytes bytes);

// Returns the pages to the kernel and forbids access until allow_writes(); the memory policy stays. false if refused (a
// limit on mappings): then nothing has changed. Locked memory keeps its contents.
bool withdraw(void* p, Bytes bytes);

// Allocates pages for the range now, including the rest of its first and last page. false if there is no memory, or
// before Linux 5.14. After a filter (filter.h) does nothing and returns true.
bool populate(void* p, Bytes bytes);
// Whether the bytes at `p` can be read, and puts pages there where none are. false too where the kernel cannot tell:
// before Linux 5.14, and in a process with a filter of system calls. Waits where a read would (a disk, a userfaultfd).
bool make_readable(const void* p, Bytes bytes);

// Makes withdrawn pages, or read-only pages of any mapping, writable; and makes pages read-only again. false if
// refused.
bool allow_writes(void* p, Bytes bytes);
bool forbid_writes(void* p, Bytes bytes);

enum class HugePages { system, on, off };
// Advises the kernel about huge pages in the range. Ignores errors: they mean a kernel without huge pages.
void advise_huge(void* p, Bytes bytes, HugePages mode);

}  // namespace numalloc::os

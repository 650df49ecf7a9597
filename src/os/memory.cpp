#include "os/memory.h"

#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "os/libc_call.h"
#include "os/optional_call.h"
#include "os/refusals.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace numalloc::os {

// Bypasses libc's function while the heap starts: the constructor of a library that interposes it may not have run.
bool unmap_unused(Address unused, Bytes bytes) {
    return at_libc_call == nullptr ? !failed(call(SYS_munmap, unused, bytes))
                                   : unmap(reinterpret_cast<void*>(unused), bytes);
}

namespace {

constinit std::atomic<Bytes> known_page_size{0};  // 0: not read yet; every thread reads the same value

long map_fixed(void* p, Bytes bytes, int access) {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    const auto map_with = [&](int more) { return call(SYS_mmap, p, bytes, access, flags | more, -1, 0); };
    // A filter that does not know the flag may refuse it with any error, or kill.
    long at = filtered() ? map_with(0) : map_with(MAP_FIXED_NOREPLACE);
    if (failed(at) && at != -EEXIST && at != -ENOMEM) at = map_with(0);
    if (failed(at) || at == as_long(p)) return at;
    // The kernel took the address as a hint, as it does without the flag and before 4.17: the range was not free.
    unmap_unused(static_cast<Address>(at), bytes);
    return -EEXIST;
}

Mapped outcome(long result) {
    if (!failed(result)) return Mapped::done;
    return result == -EEXIST ? Mapped::taken : Mapped::refused;
}

// Core dumps, by the kernel or by gcore, must not contain memory that is not in use.
void* without_dump(Address p, Bytes bytes) {
    optional_call(SYS_madvise, p, bytes, MADV_DONTDUMP);
    return reinterpret_cast<void*>(p);
}

}  // namespace

Address where_the_kernel_maps() {
    const long at = call(SYS_mmap, 0, page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(at)) return 0;
    unmap_unused(static_cast<Address>(at), page_size());
    return static_cast<Address>(at);
}

Bytes page_size() {
    Bytes size = known_page_size.load(std::memory_order_relaxed);
    if (size == 0) {
        size = static_cast<Bytes>(sysconf(_SC_PAGESIZE));
        known_page_size.store(size, std::memory_order_relaxed);
    }
    return size;
}

void* hold(Bytes bytes, Bytes alignment) {
    const Bytes padded = bytes + alignment;
    const long start = call(SYS_mmap, 0, padded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(start)) return nullptr;
    const Address begin = static_cast<Address>(start);
    const Address aligned = align_up(begin, alignment);
    if (aligned > begin) unmap_unused(begin, aligned - begin);
    const Address end = begin + padded;
    if (end > aligned + bytes) unmap_unused(aligned + bytes, end - (aligned + bytes));
    return without_dump(aligned, bytes);
}

bool hold_at(void* p, Bytes bytes) {
    if (failed(map_fixed(p, bytes, PROT_NONE))) return false;
    without_dump(address_of(p), bytes);
    return true;
}

bool hold_again(void* p, Bytes bytes) {
    {
        const LibcCall call;
        if (mmap(p, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) return false;
    }
    without_dump(address_of(p), bytes);
    return true;
}

bool commit(void* p, Bytes bytes) {
    if (failed(call(SYS_mprotect, p, bytes, PROT_READ | PROT_WRITE))) return false;
    optional_call(SYS_madvise, p, bytes, MADV_DODUMP);
    return true;
}

Mapped map_at(void* p, Bytes bytes) { return outcome(map_fixed(p, bytes, PROT_READ | PROT_WRITE)); }

bool is_free(void* p, Bytes bytes) {
    return !failed(map_fixed(p, bytes, PROT_NONE)) && unmap_unused(address_of(p), bytes);
}

void* map(Bytes bytes) {
    const long p = call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return failed(p) ? nullptr : reinterpret_cast<void*>(p);
}

bool unmap(void* p, Bytes bytes) {
    const LibcCall call;
    return munmap(p, bytes) == 0;
}

bool discard(void* p, Bytes bytes) {
    const LibcCall call;
    // The kernel refuses this for locked memory (mlockall), which stays resident as the program wants it.
    return refused_discards.note(madvise(p, bytes, MADV_DONTNEED) == 0 ? 0 : errno) == 0;
}

bool discard_unseen(void* unseen, Bytes bytes) { return !failed(call(SYS_madvise, unseen, bytes, MADV_DONTNEED)); }

bool withdraw(void* p, Bytes bytes) {
    if (failed(call(SYS_mprotect, p, bytes, PROT_NONE))) return false;
    discard(p, bytes);
    return true;
}

bool populate(void* p, Bytes bytes) {
    if (filtered()) return true;
    const Address first = align_down(address_of(p), page_size());
    return !failed(call(SYS_madvise, first, align_up(address_of(p) + bytes, page_size()) - first, MADV_POPULATE_WRITE));
}

bool make_readable(const void* p, Bytes bytes) {
    const Address first = align_down(address_of(p), page_size()), end = align_up(address_of(p) + bytes, page_size());
    return !failed(optional_call(SYS_madvise, first, end - first, MADV_POPULATE_READ));
}

bool allow_writes(void* p, Bytes bytes) { return !failed(call(SYS_mprotect, p, bytes, PROT_READ | PROT_WRITE)); }
bool forbid_writes(void* p, Bytes bytes) { return !failed(call(SYS_mprotect, p, bytes, PROT_READ)); }

void advise_huge(void* p, Bytes bytes, HugePages mode) {
    if (mode == HugePages::system) return;
    optional_call(SYS_madvise, p, bytes, mode == HugePages::on ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

}  // namespace numalloc::os

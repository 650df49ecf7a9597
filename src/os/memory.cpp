#include "os/memory.h"

#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/sysfs.h"
#include "os/syscall.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace numalloc::os {

Bytes page_size() { return static_cast<Bytes>(sysconf(_SC_PAGESIZE)); }

void* reserve(Bytes bytes, Bytes alignment) {
    const Bytes padded = bytes + alignment;
    const long start = call(SYS_mmap, 0, padded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (failed(start)) return nullptr;
    const Address begin = static_cast<Address>(start);
    const Address aligned = align_up(begin, alignment);
    if (aligned > begin) call(SYS_munmap, begin, aligned - begin);
    const Address end = begin + padded;
    if (end > aligned + bytes) call(SYS_munmap, aligned + bytes, end - (aligned + bytes));
    return reinterpret_cast<void*>(aligned);
}

bool commit(void* p, Bytes bytes) { return !failed(call(SYS_mprotect, p, bytes, PROT_READ | PROT_WRITE)); }

bool commit_read_only(void* p, Bytes bytes) { return !failed(call(SYS_mprotect, p, bytes, PROT_READ)); }

void* map(Bytes bytes) {
    const long p = call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return failed(p) ? nullptr : reinterpret_cast<void*>(p);
}

void unmap(void* p, Bytes bytes) { call(SYS_munmap, p, bytes); }

bool discard(void* p, Bytes bytes) {
    // Locked memory (mlockall) refuses: it stays with us, which is what its owner asked for.
    return !failed(call(SYS_madvise, p, bytes, MADV_DONTNEED));
}

bool populate(void* p, Bytes bytes) { return !failed(call(SYS_madvise, p, bytes, MADV_POPULATE_WRITE)); }

void advise_huge(void* p, Bytes bytes, HugePages mode) {
    if (mode == HugePages::system) return;
    call(SYS_madvise, p, bytes, mode == HugePages::on ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

Bytes address_space_left() {
    rlimit64 limit{};
    if (failed(call(SYS_prlimit64, 0, RLIMIT_AS, 0, &limit)) || limit.rlim_cur == RLIM64_INFINITY) return ~Bytes{0};
    char text[64];
    const long n = read_file("/proc/self/statm", text, sizeof text);
    Bytes used = 0;
    for (long i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) used = used * 10 + static_cast<Bytes>(text[i] - '0');
    used *= page_size();
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

}  // namespace numalloc::os

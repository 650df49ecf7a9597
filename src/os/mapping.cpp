#include "os/mapping.h"

#include <linux/mman.h>
#include <sys/mman.h>

#include <cerrno>

#include "os/libc_call.h"
#include "os/memory.h"
#include "os/optional_call.h"
#include "os/syscall.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace numalloc::os {

namespace {

// Bytes moved in one call: the kernel's overcommit heuristic may refuse a larger mapping. It is a multiple of a page
// table's span, so that the kernel can move whole tables.
constexpr Bytes longest_move = GiB;

enum class Probe { one_mapping, several, refused };

// Before Linux 6.17 mremap cannot move a range of several mappings, and fails only after it has unmapped the target.
// Growing the range in place is a harmless test: it fails with EFAULT for such a range, and with ENOMEM or EAGAIN for a
// range without room to grow. If it succeeds, behind the heap's last page, the added page is unmapped at once.
Probe probe(void* p, Bytes bytes) {
    const Bytes page = page_size();
    const long grown = call(SYS_mremap, p, bytes, bytes + page, 0);
    if (!failed(grown)) unmap(static_cast<char*>(p) + bytes, page);
    if (!failed(grown) || grown == -ENOMEM || grown == -EAGAIN) return Probe::one_mapping;
    return grown == -EFAULT ? Probe::several : Probe::refused;
}

// Maps the range again if a refused call has unmapped it. false: that failed, and the range is no longer ours. A
// process at its limit of mappings is refused before the kernel looks at the range: then allow_writes() asks whether it
// is mapped, and changes nothing.
bool fill_hole(void* p, Bytes bytes) { return map_at(p, bytes) != Mapped::refused || allow_writes(p, bytes); }

bool map_over(void* p, Bytes bytes) {
    const LibcCall call;
    return mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace

Bytes mapping_length(void* p, Bytes at_most) {
    at_most = min_of(at_most, longest_move);
    const Probe whole = probe(p, at_most);
    if (whole != Probe::several) return whole == Probe::refused ? 0 : at_most;
    const Bytes page = page_size();
    Bytes fits = 0;
    for (Bytes too_long = at_most; too_long - fits > page;) {
        const Bytes middle = fits + align_up((too_long - fits) / 2, page);
        if (middle == too_long) break;
        switch (probe(p, middle)) {
            case Probe::one_mapping: fits = middle; break;
            case Probe::several: too_long = middle; break;
            case Probe::refused: return 0;
        }
    }
    return fits;
}

Replaced move_mapping(void* from, void* to, Bytes bytes) {
    // DONTUNMAP leaves the source mapped, so another thread's mmap can never land in our region.
    {
        const LibcCall call;
        if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) != MAP_FAILED)
            return Replaced::done;
    }
    return fill_hole(to, bytes) ? Replaced::refused : Replaced::lost;
}

bool locks_new_mappings() {
    void* const page = map(page_size());
    if (page == nullptr) return true;
    const LibcCall call;
    const bool locked = madvise(page, page_size(), MADV_DONTNEED) != 0;
    munmap(page, page_size());
    return locked;
}

bool grants_a_mapping(void* p) {
    // Whatever becomes of the second call, the page stays usable.
    const long split = optional_call(SYS_madvise, p, page_size(), MADV_DONTDUMP);
    optional_call(SYS_madvise, p, page_size(), MADV_DODUMP);
    return split != -ENOMEM && split != -EAGAIN;
}

Replaced renew(void* p, Bytes bytes) {
    for (Bytes done = 0; done < bytes;) {
        const Bytes piece = min_of(bytes - done, longest_move);
        void* const at = static_cast<char*>(p) + done;
        if (!map_over(at, piece)) return fill_hole(at, piece) ? Replaced::refused : Replaced::lost;
        done += piece;
    }
    return Replaced::done;
}

}  // namespace numalloc::os

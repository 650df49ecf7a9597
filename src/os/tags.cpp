#include "os/tags.h"

#include <linux/prctl.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cerrno>

#include "os/syscall.h"

namespace numalloc::os {

constinit int page_access = PROT_READ | PROT_WRITE;

#if defined(__aarch64__)

// Kernels' headers before 5.10 have none of them.
#ifndef HWCAP2_MTE
#define HWCAP2_MTE (1UL << 18)
#endif
#ifndef PROT_MTE
#define PROT_MTE 0x20
#endif
#ifndef PR_SET_TAGGED_ADDR_CTRL
#define PR_SET_TAGGED_ADDR_CTRL 55
#define PR_TAGGED_ADDR_ENABLE (1UL << 0)
#endif
#ifndef PR_MTE_TCF_SYNC
#define PR_MTE_TCF_SYNC (1UL << 1)
#define PR_MTE_TAG_SHIFT 3
#endif

bool begin_tags() {
    const int kept = errno;
    const bool there = (getauxval(AT_HWCAP2) & HWCAP2_MTE) != 0;
    errno = kept;
    // By chance any but 0. A pointer with a tag may be handed to system calls.
    constexpr unsigned long all_but_0 = 0xFFFE;
    constexpr unsigned long control = PR_TAGGED_ADDR_ENABLE | PR_MTE_TCF_SYNC | all_but_0 << PR_MTE_TAG_SHIFT;
    if (!there || failed(call(SYS_prctl, PR_SET_TAGGED_ADDR_CTRL, control, 0, 0, 0))) return false;
    page_access |= PROT_MTE;
    return true;
}

#else

bool begin_tags() { return false; }

#endif

}  // namespace numalloc::os

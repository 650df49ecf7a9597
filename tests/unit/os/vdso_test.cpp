#include "os/vdso.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>

#include <cerrno>

#include "os/affinity.h"

namespace numalloc::os {
namespace {

using GetCpu = int (*)(unsigned* cpu, unsigned* node, void* unused);

TEST(Vdso, FindsJustTheFunctionsThatItHas) {
    errno = 77;
    EXPECT_EQ(vdso_function("__vdso_no_such_function"), nullptr);
    EXPECT_EQ(vdso_function(""), nullptr);
#if defined(__x86_64__)
    if (getauxval(AT_SYSINFO_EHDR) != 0) {
        EXPECT_NE(vdso_function("__vdso_getcpu"), nullptr);
    }
#endif
    EXPECT_EQ(errno, 77);
}

TEST(Vdso, KnowsTheCpuWhereItHasGetcpu) {
    CpuMask allowed;
    ASSERT_GT(get_affinity(0, allowed), 0);
    for (unsigned cpu = allowed.first(); cpu < max_cpus; cpu = allowed.next(cpu + 1)) {
        CpuMask one;
        one.add(cpu);
        ASSERT_EQ(set_affinity(0, one), 0);
        unsigned found = ~0U;
        if (auto* const getcpu = reinterpret_cast<GetCpu>(vdso_function("__vdso_getcpu")); getcpu != nullptr) {
            EXPECT_EQ(getcpu(&found, nullptr, nullptr), 0);
            EXPECT_EQ(found, cpu);
            EXPECT_EQ(cpu_without_call(), static_cast<int>(cpu));
        }
        EXPECT_EQ(current_cpu(), static_cast<int>(cpu));
    }
    ASSERT_EQ(set_affinity(0, allowed), 0);
}

}  // namespace
}  // namespace numalloc::os

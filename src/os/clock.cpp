#include "os/clock.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "os/syscall.h"

namespace numalloc::os {

namespace {

using Clock = int (*)(clockid_t, timespec*);

#if defined(__x86_64__)
constexpr const char* vdso_name = "__vdso_clock_gettime";
#else
constexpr const char* vdso_name = "__kernel_clock_gettime";
#endif

// The function in the vDSO, the page that the kernel maps into every process. nullptr if there is none (valgrind).
Clock in_vdso() {
    const int kept = errno;
    const auto base = static_cast<ElfW(Addr)>(getauxval(AT_SYSINFO_EHDR));
    errno = kept;
    if (base == 0) return nullptr;
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
    const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
    ElfW(Addr) shift = base;
    const ElfW(Dyn)* dynamic = nullptr;
    for (int i = 0; i < header->e_phnum; ++i) {
        if (segments[i].p_type == PT_LOAD) shift = base + segments[i].p_offset - segments[i].p_vaddr;
        if (segments[i].p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(base + segments[i].p_offset);
    }
    ElfW(Addr) symbols = 0;
    ElfW(Addr) names = 0;
    for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
        if (dynamic->d_tag == DT_SYMTAB) symbols = shift + dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_STRTAB) names = shift + dynamic->d_un.d_ptr;
    }
    // The linker places the names directly behind the symbols, so the symbol table ends where the names begin.
    if (symbols == 0) return nullptr;
    for (ElfW(Addr) at = symbols; at + sizeof(ElfW(Sym)) <= names; at += sizeof(ElfW(Sym))) {
        const auto* symbol = reinterpret_cast<const ElfW(Sym)*>(at);
        const char* name = reinterpret_cast<const char*>(names + symbol->st_name);
        if (symbol->st_shndx != SHN_UNDEF && std::strcmp(name, vdso_name) == 0)
            return reinterpret_cast<Clock>(shift + symbol->st_value);
    }
    return nullptr;
}

// Used if there is no vDSO (valgrind, vdso=0): each call advances the clock by one millisecond.
int by_looks(clockid_t, timespec* t) {
    static constinit std::atomic<std::uint32_t> looks{0};
    const std::uint32_t now = looks.fetch_add(1, std::memory_order_relaxed);
    t->tv_sec = now / 1000;
    t->tv_nsec = static_cast<long>(now % 1000) * 1'000'000;
    return 0;
}

int look_first(clockid_t which, timespec* t);

// Threads that race here find the same function.
constinit std::atomic<Clock> clock_function{look_first};

int look_first(clockid_t which, timespec* t) {
    const Clock found = in_vdso();
    clock_function.store(found != nullptr ? found : by_looks, std::memory_order_relaxed);
    return clock_function.load(std::memory_order_relaxed)(which, t);
}

std::uint64_t exactly(clockid_t which) {
    timespec t{};
    call(SYS_clock_gettime, which, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

std::uint32_t milliseconds() {
    timespec t{};
    // For this clock neither function fails or makes a system call. Exact clocks need one on some machines.
    clock_function.load(std::memory_order_relaxed)(CLOCK_MONOTONIC_COARSE, &t);
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(t.tv_sec) * 1000 +
                                      static_cast<std::uint64_t>(t.tv_nsec) / 1000000);
}

std::uint64_t nanoseconds() { return exactly(CLOCK_MONOTONIC); }
std::uint64_t time_of_day() { return exactly(CLOCK_REALTIME); }

}  // namespace numalloc::os

#include "api/malloc/replaced.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>

#include "api/malloc/aside.h"

#if !defined(NUMALLOC_STATIC)
#include <elf.h>
#include <link.h>

#include <cstring>
#endif

// Outside of all namespaces: gcc 15 mangles names that are declared extern "C" in an unnamed one.
#if defined(NUMALLOC_STATIC)
// For each name the program's linker has chosen one of two symbols. They are weak, so that a C program is not linked
// with the operators.
#define NUMALLOC_PAIR(symbol) extern "C" __attribute__((weak)) const char symbol, numalloc_own##symbol
NUMALLOC_PAIR(_Znwm);
NUMALLOC_PAIR(_Znam);
NUMALLOC_PAIR(_ZnwmSt11align_val_t);
NUMALLOC_PAIR(_ZnamSt11align_val_t);
NUMALLOC_PAIR(_ZdlPv);
NUMALLOC_PAIR(_ZdaPv);
NUMALLOC_PAIR(_ZdlPvSt11align_val_t);
NUMALLOC_PAIR(_ZdaPvSt11align_val_t);
extern "C" __attribute__((weak)) void* __libc_malloc(std::size_t);  // ours if malloc is ours, else libc's or undefined
extern "C" __attribute__((weak)) void __libc_free(void*);
#else
extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start;
#endif

namespace numalloc::api {

namespace {

enum class Known : signed char { nothing, ours, replaced, by_posix_memalign };

#if defined(NUMALLOC_STATIC)
Known find_replaced() {
#define NUMALLOC_DIFFERS(symbol) (&symbol != &numalloc_own##symbol)
    const bool any = NUMALLOC_DIFFERS(_Znwm) || NUMALLOC_DIFFERS(_Znam) || NUMALLOC_DIFFERS(_ZnwmSt11align_val_t) ||
                     NUMALLOC_DIFFERS(_ZnamSt11align_val_t) || NUMALLOC_DIFFERS(_ZdlPv) || NUMALLOC_DIFFERS(_ZdaPv) ||
                     NUMALLOC_DIFFERS(_ZdlPvSt11align_val_t) || NUMALLOC_DIFFERS(_ZdaPvSt11align_val_t) ||
                     &std::malloc != &__libc_malloc || &std::free != &__libc_free;
    return any ? Known::replaced : Known::ours;
}
#else
bool leaned_on(const char* name) {
    return strncmp(name, "_Zn", 3) == 0 || strncmp(name, "_Zd", 3) == 0 || strcmp(name, "malloc") == 0 ||
           strcmp(name, "free") == 0 || strcmp(name, "aligned_alloc") == 0;
}

struct Tables {
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    const ElfW(Rela) * relocations[2] = {};
    std::size_t bytes[2] = {};
};

Tables own_tables(const char* base) {
    // glibc has already added the base; other dynamic linkers have not.
    const auto at = [base](const ElfW(Dyn) * d) {
        const auto address = static_cast<ElfW(Addr)>(d->d_un.d_ptr);
        return address < reinterpret_cast<ElfW(Addr)>(base) ? base + address : reinterpret_cast<const char*>(address);
    };
    Tables t;
    for (const ElfW(Dyn)* d = _DYNAMIC; d->d_tag != DT_NULL; ++d) {
        switch (d->d_tag) {
            case DT_SYMTAB: t.symbols = reinterpret_cast<const ElfW(Sym)*>(at(d)); break;
            case DT_STRTAB: t.names = at(d); break;
            case DT_RELA: t.relocations[0] = reinterpret_cast<const ElfW(Rela)*>(at(d)); break;
            case DT_RELASZ: t.bytes[0] = d->d_un.d_val; break;
            case DT_JMPREL: t.relocations[1] = reinterpret_cast<const ElfW(Rela)*>(at(d)); break;
            case DT_PLTRELSZ: t.bytes[1] = d->d_un.d_val; break;
            default: break;
        }
    }
    return t;
}

// The relocations by which the library calls its own names hold the dynamic linker's choice. Comparing addresses in C++
// would fail: if a program at a fixed address takes the address of free, all code sees the program's own stub.
Known find_replaced() {
    bool any = false;
    bool alloc = false;
    bool memalign = false;
    const char* const base = reinterpret_cast<const char*>(&__ehdr_start);
    const Tables t = own_tables(base);
    for (int table = 0; table < 2; ++table) {
        const ElfW(Rela)* const end = t.relocations[table] + t.bytes[table] / sizeof(ElfW(Rela));
        for (const ElfW(Rela)* r = t.relocations[table]; r != end; ++r) {
            const ElfW(Sym)& symbol = t.symbols[r->r_info >> 32];
            if (symbol.st_shndx == SHN_UNDEF) continue;
            const char* bound_to;
            memcpy(&bound_to, base + r->r_offset, sizeof(bound_to));
            if (bound_to == base + symbol.st_value) continue;
            const char* const name = t.names + symbol.st_name;
            any = any || leaned_on(name);
            alloc = alloc || strcmp(name, "aligned_alloc") == 0;
            memalign = memalign || strcmp(name, "posix_memalign") == 0;
        }
    }
    if (!any) return Known::ours;
    return memalign && !alloc ? Known::by_posix_memalign : Known::replaced;
}
#endif

Known answer() {
    static constinit std::atomic<Known> known{Known::nothing};
    Known answer = known.load(std::memory_order_relaxed);
    if (answer == Known::nothing) {
        answer = stepped_aside() ? Known::replaced : find_replaced();
        known.store(answer, std::memory_order_relaxed);
    }
    return answer;
}

}  // namespace

bool operators_replaced() { return answer() != Known::ours; }
bool aligned_by_posix_memalign() { return answer() == Known::by_posix_memalign; }

}  // namespace numalloc::api

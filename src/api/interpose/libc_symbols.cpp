#include "api/interpose/libc_symbols.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "api/interpose/next.h"
#include "base/atomic.h"
#include "os/fork_gate.h"
#include "os/lock.h"
#include "os/memory.h"

namespace numalloc::api {

namespace {

constexpr const char* family[] = {"malloc",
                                  "free",
                                  "calloc",
                                  "realloc",
                                  "reallocarray",
                                  "posix_memalign",
                                  "aligned_alloc",
                                  "memalign",
                                  "valloc",
                                  "pvalloc",
                                  "cfree",
                                  "free_sized",
                                  "free_aligned_sized",
                                  "malloc_usable_size",
                                  "mallinfo",
                                  "mallinfo2",
                                  "malloc_stats",
                                  "malloc_info",
                                  "malloc_trim",
                                  "mallopt",
                                  "__libc_malloc",
                                  "__libc_free",
                                  "__libc_cfree",
                                  "__libc_calloc",
                                  "__libc_realloc",
                                  "__libc_memalign",
                                  "__libc_valloc",
                                  "__libc_pvalloc",
                                  "__posix_memalign"};

// A loaded library's dynamic symbols and their GNU hash table.
struct Symbols {
    Address base = 0;
    ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    const std::uint32_t* hash = nullptr;

    // Visits the symbols with this name, of all versions, until `visit` returns false. Returns whether it never did.
    template <class Visit>
    bool for_each(const char* name, Visit visit) const {
        std::uint32_t wanted = 5381;
        for (const char* p = name; *p != '\0'; ++p) wanted = wanted * 33 + static_cast<unsigned char>(*p);
        const std::uint32_t buckets = hash[0];
        const std::uint32_t first = hash[1];
        const std::uint32_t* const bucket = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof *hash);
        const std::uint32_t* const chain = bucket + buckets;
        std::uint32_t i = bucket[wanted % buckets];
        if (i < first) return true;
        for (;; ++i) {
            const std::uint32_t h = chain[i - first];
            ElfW(Sym)& symbol = symbols[i];
            if ((h | 1) == (wanted | 1) && symbol.st_shndx != SHN_UNDEF &&
                std::strcmp(names + symbol.st_name, name) == 0)
                if (!visit(symbol)) return false;
            if ((h & 1) != 0) return true;
        }
    }
};

bool find_libc(Symbols& libc) {
    void* handle = NUMALLOC_NEXT(dlopen)(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return false;
    link_map* map = nullptr;
    const bool found = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0;
    dlclose(handle);  // the process keeps libc
    if (!found) return false;
    libc.base = map->l_addr;
    for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) switch (d->d_tag) {
            case DT_SYMTAB: libc.symbols = reinterpret_cast<ElfW(Sym)*>(d->d_un.d_ptr); break;
            case DT_STRTAB: libc.names = reinterpret_cast<const char*>(d->d_un.d_ptr); break;
            case DT_GNU_HASH: libc.hash = reinterpret_cast<const std::uint32_t*>(d->d_un.d_ptr); break;
            default: break;
        }
    return libc.symbols != nullptr && libc.names != nullptr && libc.hash != nullptr;
}

// Pages with code are left alone: some systems do not let a page be executed that was written before.
bool lies_beside_code(const Symbols& libc) {
    struct Question {
        Address base;
        Address address;
        bool only_read;
    } question{libc.base, address_of(libc.symbols), false};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            auto& q = *static_cast<Question*>(data);
            if (info->dlpi_addr != q.base) return 0;
            for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
                const ElfW(Phdr)& segment = info->dlpi_phdr[i];
                if (segment.p_type == PT_LOAD && q.address - q.base - segment.p_vaddr < segment.p_memsz)
                    q.only_read = segment.p_flags == PF_R;
            }
            return 1;
        },
        &question);
    return !question.only_read;
}

// The entries to change, and what they are to hold.
struct Changes {
    static constexpr unsigned most = 4 * (sizeof family / sizeof *family);
    struct Change {
        ElfW(Sym) * symbol;
        ElfW(Addr) value;
    } change[most];
    unsigned count = 0;
};

// Takes the loader's lock. Names that only numalloc has are not in the table of libc.
bool find(Changes& changes) {
    Symbols libc;
    if (!find_libc(libc) || lies_beside_code(libc)) return false;
    for (const char* name : family) {
        void* const target = dlsym(RTLD_DEFAULT, name);
        const auto add = [&](ElfW(Sym) & symbol) {
            if (changes.count == Changes::most) return false;
            changes.change[changes.count++] = {&symbol, address_of(target) - libc.base};
            return true;
        };
        if (target != nullptr && !libc.for_each(name, add)) return false;
    }
    return true;
}

constinit os::Lock<os::LockRank::initialise> changing;

// Changes all entries or none. find() has seen to it that they lie in a segment that is only read: two system calls for
// all its pages.
bool make(const Changes& changes) NUMALLOC_REQUIRES(changing) {
    Address from = ~Address{0};
    Address to = 0;
    for (unsigned i = 0; i < changes.count; ++i) {
        from = min_of(from, address_of(&changes.change[i].symbol->st_value));
        to = max_of(to, address_of(&changes.change[i].symbol->st_value + 1));
    }
    if (changes.count == 0) return true;
    from = align_down(from, os::page_size());
    void* const pages = reinterpret_cast<void*>(from);
    if (!os::allow_writes(pages, to - from)) return false;
    for (unsigned i = 0; i < changes.count; ++i)
        // One aligned word: a concurrent look-up finds the old function or the new one.
        store_relaxed(changes.change[i].symbol->st_value, changes.change[i].value);
    os::forbid_writes(pages, to - from);
    return true;
}

}  // namespace

// Not under a lock while it waits for the loader's: another thread may hold that in a constructor, and come here.
bool libc_symbols_lead_to_ours() {
    static constinit std::atomic<bool> done{false};
    if (done.load(std::memory_order_acquire)) return true;
    Changes changes;
    if (!find(changes)) return false;
    // In the child of a fork in between, the next call makes the changes again.
    const os::PassesGate passes;
    os::Guard guard(changing);
    if (!done.load(std::memory_order_relaxed)) done.store(make(changes), std::memory_order_release);
    return done.load(std::memory_order_relaxed);
}

}  // namespace numalloc::api

#include "api/interpose/next.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <atomic>
#include <cstring>

#include "api/interpose/library.h"
#include "base/bits.h"

namespace numalloc::api {

namespace {

constexpr int count = static_cast<int>(Next::count);
#define NUMALLOC_NAME(name) #name,
constexpr const char* names[count] = {NUMALLOC_NEXT_FUNCTIONS(NUMALLOC_NAME)};
#undef NUMALLOC_NAME
constinit std::atomic<void*> found[count] = {};
constinit std::atomic<bool> looked_up{false};
// Where libc is loaded; written before looked_up.
constinit Address libc_start = 0;
constinit Address libc_end = 0;

struct Range {
    Address start = ~Address{0};
    Address end = 0;
    bool has(Address a) const { return a - start < end - start; }
};

Range range_of(const dl_phdr_info& object) {
    Range range;
    for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = object.dlpi_phdr[i];
        if (segment.p_type != PT_LOAD) continue;
        range.start = min_of<Address>(range.start, object.dlpi_addr + segment.p_vaddr);
        range.end = max_of<Address>(range.end, object.dlpi_addr + segment.p_vaddr + segment.p_memsz);
    }
    return range;
}

int note_libc(dl_phdr_info* object, std::size_t, void* inside) {
    const Range range = range_of(*object);
    if (!range.has(address_of(inside))) return 0;
    libc_start = range.start;
    libc_end = range.end;
    return 1;
}

enum class First : int { neither, ours, libc };
int find_first(dl_phdr_info* object, std::size_t, void*) {
    const Range range = range_of(*object);
    if (range.has(reinterpret_cast<Address>(&note_libc))) return static_cast<int>(First::ours);
    const bool is_libc = range.has(reinterpret_cast<Address>(&gnu_get_libc_version));
    return static_cast<int>(is_libc ? First::libc : First::neither);
}

using LookUp = void* (*)(void* handle, const char* name);
LookUp libc_dlsym() {
    // dlvsym() would fail before, and call malloc for its message.
    if (strverscmp(gnu_get_libc_version(), "2.34") < 0) return dlsym;
    void* const its = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    return its != nullptr ? reinterpret_cast<LookUp>(its) : dlsym;
}

void look_up() {
    if (looked_up.load(std::memory_order_acquire)) return;
    for (int i = 0; i < count; ++i) found[i].store(symbol_behind(names[i]), std::memory_order_relaxed);
    dl_iterate_phdr(note_libc, symbol_behind("gnu_get_libc_version"));
    looked_up.store(true, std::memory_order_release);
}

}  // namespace

void* symbol_behind(const char* name) { return libc_dlsym()(RTLD_NEXT, name); }

bool is_of_libc(const void* function) {
    look_up();
    return address_of(function) - libc_start < libc_end - libc_start;
}

void* next_function(Next which) {
    look_up();
    return found[static_cast<int>(which)].load(std::memory_order_relaxed);
}

void* others_function(Next which) {
    if (!looked_up.load(std::memory_order_acquire)) {
        if (looking_up_starts_malloc) return nullptr;
        look_up();
    }
    void* const function = found[static_cast<int>(which)].load(std::memory_order_relaxed);
    return is_of_libc(function) ? nullptr : function;
}

}  // namespace numalloc::api

// Whether the program's calls come here before they come to libc: the loader searches objects in this order. A library
// that was opened by dlopen() is behind libc.
extern "C" bool numalloc_interposes_threads() {
    using namespace numalloc::api;
    return dl_iterate_phdr(find_first, nullptr) != static_cast<int>(First::libc);
}

#include "os/vdso.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <cerrno>
#include <cstring>

namespace numalloc::os {

void* vdso_function(const char* name) {
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
        const char* its_name = reinterpret_cast<const char*>(names + symbol->st_name);
        if (symbol->st_shndx != SHN_UNDEF && std::strcmp(its_name, name) == 0)
            return reinterpret_cast<void*>(shift + symbol->st_value);
    }
    return nullptr;
}

}  // namespace numalloc::os

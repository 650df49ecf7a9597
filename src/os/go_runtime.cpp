#include "os/go_runtime.h"

#include <link.h>

#include <cstddef>
#include <cstring>

#include "base/bits.h"

namespace numalloc::os {

namespace {

constexpr char go_name[4] = "Go\0";
constexpr ElfW(Word) go_build_id = 4;

// A segment of notes: headers, each followed by a name and a descriptor, both padded to 4 bytes.
bool has_note_of_go(const char* at, std::size_t bytes) {
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const std::size_t name = align_up(note.n_namesz, 4);
        const std::size_t whole = sizeof note + name + align_up(note.n_descsz, 4);
        if (whole > bytes) return false;
        if (note.n_type == go_build_id && note.n_namesz == sizeof go_name &&
            std::memcmp(at + sizeof note, go_name, sizeof go_name) == 0)
            return true;
        at += whole;
        bytes -= whole;
    }
    return false;
}

// Whether a part of the object is loaded, which is not so for each segment of notes.
bool is_loaded(const dl_phdr_info& object, const ElfW(Phdr) & part) {
    for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = object.dlpi_phdr[i];
        const Address from = part.p_vaddr - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && from <= segment.p_memsz && part.p_memsz <= segment.p_memsz - from) return true;
    }
    return false;
}

int look_at(dl_phdr_info* object, std::size_t, void*) {
    for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = object->dlpi_phdr[i];
        if (segment.p_type == PT_NOTE && is_loaded(*object, segment) &&
            has_note_of_go(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz))
            return 1;
    }
    return 0;
}

}  // namespace

bool has_go_runtime() { return dl_iterate_phdr(look_at, nullptr) != 0; }

}  // namespace numalloc::os

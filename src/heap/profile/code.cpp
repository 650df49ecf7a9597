#include "heap/profile/code.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "os/memory.h"
#include "os/sysfs.h"

namespace numalloc::profile {

namespace {

Address take_hex(const char*& p) {
    Address value = 0;
    for (;; ++p) {
        if (*p >= '0' && *p <= '9') value = value * 16 + static_cast<Address>(*p - '0');
        else if (*p >= 'a' && *p <= 'f') value = value * 16 + static_cast<Address>(*p - 'a' + 10);
        else return value;
    }
}

void skip_word(const char*& p) {
    while (*p != ' ' && *p != '\n' && *p != '\0') ++p;
    while (*p == ' ') ++p;
}

}  // namespace

CodeMappings::CodeMappings() {
    for (Bytes bytes = MiB; bytes <= GiB; bytes *= 4) {
        text_ = static_cast<char*>(os::map(bytes));
        if (text_ == nullptr) return;
        capacity_ = bytes;
        const long n = os::read_file("/proc/self/maps", text_, bytes);
        at_ = n > 0 ? text_ : "";
        // A text that is shorter than the buffer is complete.
        if (n < 0 || static_cast<Bytes>(n) + 1 < bytes) return;
        os::unmap(text_, bytes);
        text_ = nullptr;
        at_ = "";
    }
}

CodeMappings::~CodeMappings() {
    if (text_ != nullptr) os::unmap(text_, capacity_);
}

// Reads the build ID from the image's first mapping, where all linkers put the header and the notes. Without them
// there, the image has no build ID.
void CodeMappings::take_build_id(CodeMapping& mapping) const {
    mapping.build_id_length = 0;
    const Bytes bytes = image_.end - image_.begin;
    if (bytes < sizeof(ElfW(Ehdr)) || image_.path_length != mapping.path_length ||
        std::memcmp(image_.path, mapping.path, mapping.path_length) != 0)
        return;
    const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(image_.begin);
    if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phentsize != sizeof(ElfW(Phdr)) ||
        header->e_phoff > bytes || header->e_phnum > (bytes - header->e_phoff) / sizeof(ElfW(Phdr)))
        return;
    const auto* const segment = reinterpret_cast<const ElfW(Phdr)*>(image_.begin + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; ++i) {
        const Bytes length = segment[i].p_filesz;
        if (segment[i].p_type != PT_NOTE || length > bytes || segment[i].p_offset > bytes - length) continue;
        const char* note = reinterpret_cast<const char*>(image_.begin + segment[i].p_offset);
        const char* const end = note + length;
        while (end - note >= static_cast<std::ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
            ElfW(Nhdr) entry;
            std::memcpy(&entry, note, sizeof entry);
            const char* const name = note + sizeof entry;
            const char* const id = name + align_up(entry.n_namesz, 4);
            if (static_cast<Bytes>(end - name) < align_up(entry.n_namesz, 4) + entry.n_descsz) break;
            if (entry.n_type == NT_GNU_BUILD_ID && entry.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
                for (unsigned k = 0; k < entry.n_descsz && 2 * k + 1 < CodeMapping::longest_id; ++k) {
                    const auto byte = static_cast<unsigned char>(id[k]);
                    mapping.build_id[mapping.build_id_length++] = "0123456789abcdef"[byte >> 4U];
                    mapping.build_id[mapping.build_id_length++] = "0123456789abcdef"[byte & 15U];
                }
                return;
            }
            note = id + align_up(entry.n_descsz, 4);
        }
    }
}

// BEGIN-END rwxp OFFSET DEVICE INODE   PATH
bool CodeMappings::next(CodeMapping& mapping) {
    while (at_ != nullptr && *at_ != '\0') {
        const char* p = at_;
        mapping.begin = take_hex(p);
        ++p;
        mapping.end = take_hex(p);
        ++p;
        const bool readable = p[0] == 'r';
        const bool executable = p[2] == 'x';
        skip_word(p);
        mapping.offset = take_hex(p);
        skip_word(p);
        skip_word(p);
        skip_word(p);
        mapping.path = p;
        while (*p != '\n' && *p != '\0') ++p;
        mapping.path_length = static_cast<Bytes>(p - mapping.path);
        at_ = *p == '\0' ? p : p + 1;
        const bool named = mapping.path_length > 0 && *mapping.path == '/';
        if (named && mapping.offset == 0 && readable)
            image_ = {mapping.begin, mapping.end, mapping.path, mapping.path_length};
        if (!executable || mapping.path_length == 0) continue;
        if (named) take_build_id(mapping);
        else mapping.build_id_length = 0;
        return true;
    }
    return false;
}

}  // namespace numalloc::profile

#include "heap/profile/code.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "os/file.h"
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

CodeMappings::CodeMappings() : memory_(os::open_own_memory()) {
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
    if (memory_ >= 0) os::close_file(memory_);  // after a filter it was not opened
}

// Reads the build ID from the image's first mapping, where all linkers put the header and the notes. Without them
// there, the image has no build ID. By the kernel: another thread may have unmapped the image since.
void CodeMappings::read_build_id(CodeMapping& mapping) const {
    mapping.build_id_length = 0;
    const Bytes bytes = image_.end - image_.begin;
    if (image_.path_length != mapping.path_length || std::memcmp(image_.path, mapping.path, mapping.path_length) != 0)
        return;
    const auto read = [&](void* to, Bytes offset, Bytes length) {
        return offset <= bytes && length <= bytes - offset &&
               os::read_own_memory(memory_, image_.begin + offset, to, length);
    };
    ElfW(Ehdr) header;
    if (!read(&header, 0, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof(ElfW(Phdr)))
        return;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        ElfW(Phdr) segment;
        if (!read(&segment, header.e_phoff + i * sizeof segment, sizeof segment)) return;
        if (segment.p_type != PT_NOTE) continue;
        for (Bytes at = 0; at < segment.p_filesz;) {
            struct {
                ElfW(Nhdr) note;
                char name[4];
                unsigned char id[CodeMapping::longest_id / 2];
            } entry;
            const Bytes head = sizeof entry.note + sizeof entry.name;
            if (!read(&entry, segment.p_offset + at, head)) break;  // another segment may have it
            const Bytes id_bytes = entry.note.n_descsz;
            if (entry.note.n_type == NT_GNU_BUILD_ID && entry.note.n_namesz == 4 &&
                std::memcmp(entry.name, "GNU", 4) == 0) {
                const Bytes known = min_of<Bytes>(id_bytes, sizeof entry.id);
                if (read(entry.id, segment.p_offset + at + head, known))
                    for (Bytes k = 0; k < known; ++k) mapping.add_to_id(entry.id[k]);
                return;
            }
            at += sizeof entry.note + align_up(Bytes{entry.note.n_namesz}, 4) + align_up(id_bytes, 4);
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
        return true;
    }
    return false;
}

}  // namespace numalloc::profile

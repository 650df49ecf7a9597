// The code in the process's address space: programs and libraries, as /proc/self/maps lists them.
#pragma once

#include "base/bits.h"

namespace numalloc::profile {

struct CodeMapping {
    Address begin = 0, end = 0;
    Bytes offset = 0;            // bytes from the start of the file
    const char* path = nullptr;  // not terminated by NUL
    Bytes path_length = 0;
    // The build ID that the linker wrote into the file, in hexadecimal digits; empty if it has none.
    static constexpr unsigned longest_id = 64;
    char build_id[longest_id];
    unsigned build_id_length = 0;
    void add_to_id(unsigned char byte) {
        build_id[build_id_length++] = "0123456789abcdef"[byte >> 4U];
        build_id[build_id_length++] = "0123456789abcdef"[byte & 15U];
    }
};

// Reads the list when it is constructed, onto pages that it maps for itself.
class CodeMappings {
public:
    CodeMappings();
    ~CodeMappings();
    CodeMappings(const CodeMappings&) = delete;
    CodeMappings& operator=(const CodeMappings&) = delete;

    // The next mapping with code. Returns false after the last one.
    bool next(CodeMapping& mapping);
    // Fills in the build ID of the mapping that next() has just returned.
    void read_build_id(CodeMapping& mapping) const;
    void again() {
        at_ = text_;
        image_ = {};
    }

private:
    // The first mapping of a file. It holds the ELF header, which says where the build ID is.
    struct Image {
        Address begin = 0, end = 0;
        const char* path = nullptr;
        Bytes path_length = 0;
    };

    long memory_;
    char* text_ = nullptr;
    Bytes capacity_ = 0;
    const char* at_ = nullptr;
    Image image_;
};

}  // namespace numalloc::profile

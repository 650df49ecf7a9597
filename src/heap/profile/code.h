// The code that the process has in its address space: programs and libraries, as /proc/self/maps lists them now.
#pragma once

#include "base/bits.h"

namespace numalloc::profile {

struct CodeMapping {
    Address begin = 0, end = 0;
    Bytes offset = 0;            // in the file
    const char* path = nullptr;  // not ended by NUL
    Bytes path_length = 0;
    // What the linker wrote into the file to know it by, as hexadecimal digits; empty where there is none.
    static constexpr unsigned longest_id = 64;
    char build_id[longest_id];
    unsigned build_id_length = 0;
};

// The text of the list; it maps memory of its own.
class CodeMappings {
public:
    CodeMappings();
    ~CodeMappings();
    CodeMappings(const CodeMappings&) = delete;
    CodeMappings& operator=(const CodeMappings&) = delete;

    // The next mapping with code; false after the last one.
    bool next(CodeMapping& mapping);
    void again() {
        at_ = text_;
        image_ = {};
    }

private:
    // What one file's mappings begin with: its header, which says where its build id is.
    struct Image {
        Address begin = 0, end = 0;
        const char* path = nullptr;
        Bytes path_length = 0;
    };
    void take_build_id(CodeMapping& mapping) const;

    char* text_ = nullptr;
    Bytes capacity_ = 0;
    const char* at_ = nullptr;
    Image image_;
};

}  // namespace numalloc::profile

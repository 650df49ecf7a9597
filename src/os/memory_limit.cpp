#include "os/memory_limit.h"

#include <cstring>
#include <new>

#include "os/memory.h"

namespace numalloc::os {

namespace {

constexpr Bytes text_bytes = 16 * KiB;  // /proc/self/cgroup and memory.stat have up to 4 KiB

// A number of bytes; 0 for "max" and for what is more than any machine has: cgroup v1's "no limit".
Bytes take_bytes(const char* text) {
    Bytes value = 0;
    for (; *text >= '0' && *text <= '9'; ++text) {
        value = value * 10 + static_cast<Bytes>(*text - '0');
        if (value >= Bytes{1} << 60) return 0;
    }
    return value;
}

const char* next_line(const char* line) {
    const char* const end = std::strchr(line, '\n');
    return end == nullptr ? nullptr : end + 1;
}

bool starts_with(const char* text, const char* start) { return std::strncmp(text, start, std::strlen(start)) == 0; }

// The value of the line "name value"; 0 if there is none.
Bytes value_of(const char* text, const char* name) {
    for (const char* line = text; line != nullptr; line = next_line(line))
        if (starts_with(line, name) && line[std::strlen(name)] == ' ') return take_bytes(line + std::strlen(name) + 1);
    return 0;
}

// Whether "memory" is in the list of controllers that ends at ':'.
bool has_memory(const char* controllers) {
    for (const char* p = controllers;; ++p) {
        if (starts_with(p, "memory") && (p[6] == ',' || p[6] == ':')) return true;
        while (*p != ',' && *p != ':' && *p != '\n' && *p != '\0') ++p;
        if (*p != ',') return false;
    }
}

}  // namespace

// Mapped: malloc's slow paths, where this is called, have little stack.
struct MemoryLimit::Scratch {
    char text[text_bytes];
    char number[64];
    Path path;
};

// `length`: of the path.
void MemoryLimit::try_folder(const SysReader& reader, Scratch& scratch, const char* root, const char* path,
                             std::size_t length) {
    Path& file = *new (&scratch.path) Path;
    file << root;
    file.append(path, length);
    const std::size_t folder_length = file.size();
    file << (second_ ? "/memory.max" : "/memory.limit_in_bytes");
    if (reader.read(reader.context, file.c_str(), scratch.number, sizeof scratch.number) <= 0) return;
    const Bytes found = take_bytes(scratch.number);
    if (found == none || (bytes_ != none && found >= bytes_)) return;
    bytes_ = found;
    folder_ = {};
    folder_.append(file.c_str(), folder_length);
}

// The cgroup at `path`, which ends with the line, and its parents.
void MemoryLimit::find_in(const SysReader& reader, Scratch& scratch, const char* root, const char* path, bool second) {
    second_ = second;
    std::size_t length = std::strcspn(path, "\n");
    for (;;) {
        while (length > 0 && path[length - 1] == '/') --length;
        try_folder(reader, scratch, root, path, length);
        if (length == 0) return;
        while (length > 0 && path[length - 1] != '/') --length;
    }
}

Bytes MemoryLimit::find(const SysReader& reader) {
    auto* const scratch = static_cast<Scratch*>(map(align_up(sizeof(Scratch), page_size())));
    if (scratch == nullptr) return none;
    const char* first = nullptr;
    const char* second = nullptr;
    const bool readable = reader.read(reader.context, "/proc/self/cgroup", scratch->text, text_bytes) > 0;
    for (const char* line = readable ? scratch->text : nullptr; line != nullptr; line = next_line(line)) {
        const char* const controllers = std::strchr(line, ':');
        if (controllers == nullptr) break;
        const char* const path = std::strchr(controllers + 1, ':');
        if (path == nullptr) break;
        if (starts_with(line, "0::")) second = path + 1;
        else if (has_memory(controllers + 1)) first = path + 1;
    }
    if (first != nullptr) {
        find_in(reader, *scratch, "/sys/fs/cgroup/memory", first, false);
    } else if (second != nullptr) {
        find_in(reader, *scratch, "/sys/fs/cgroup", second, true);
        if (bytes_ == none) find_in(reader, *scratch, "/sys/fs/cgroup/unified", second, true);
    }
    unmap_unused(address_of(scratch), align_up(sizeof(Scratch), page_size()));
    return bytes_;
}

bool MemoryLimit::read_bytes(const SysReader& reader, Scratch& scratch, const char* file, Bytes& bytes) const {
    Path& path = *new (&scratch.path) Path;
    path << folder_.c_str() << file;
    if (reader.read(reader.context, path.c_str(), scratch.number, sizeof scratch.number) <= 0) return false;
    bytes = take_bytes(scratch.number);
    return true;
}

bool MemoryLimit::read(const SysReader& reader, Usage& usage) const {
    auto* const scratch = static_cast<Scratch*>(map(align_up(sizeof(Scratch), page_size())));
    if (scratch == nullptr) return false;
    const char* const text = scratch->text;
    Path& stat = *new (&scratch->path) Path;
    stat << folder_.c_str() << "/memory.stat";
    Bytes reclaimable = 0;
    if (reader.read(reader.context, stat.c_str(), scratch->text, text_bytes) > 0)
        reclaimable = second_ ? value_of(text, "active_file") + value_of(text, "inactive_file") +
                                    value_of(text, "slab_reclaimable")
                              : value_of(text, "total_active_file") + value_of(text, "total_inactive_file");
    const bool readable =
        read_bytes(reader, *scratch, second_ ? "/memory.max" : "/memory.limit_in_bytes", usage.limit) &&
        read_bytes(reader, *scratch, second_ ? "/memory.current" : "/memory.usage_in_bytes", usage.used);
    unmap_unused(address_of(scratch), align_up(sizeof(Scratch), page_size()));
    if (readable) usage.used -= min_of(reclaimable, usage.used);
    return readable;
}

}  // namespace numalloc::os

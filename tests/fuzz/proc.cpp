// Any /proc of a process: the bytes are the files that the library asks for while it runs, NUL between them: a thread's system
// call and status, zones, a node's memory, mappings, what is resident of them; the rest is the image of a program that the
// mappings lead to. '@' in the system call is an address in libc. The real readers read them, from a file in memory.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "heap/profile/code.h"
#include "os/affinity.h"
#include "os/numa_policy.h"
#include "os/sysfs.h"
#include "os/waiting.h"
#include "statistics/smaps.h"

using namespace numalloc;

using TakeLine = void (*)(void* context, const char* line);
extern "C" long __real__ZN8numalloc2os9read_fileEPKcPcm(const char* path, char* buffer, unsigned long capacity);
extern "C" void __real__ZN8numalloc2os10read_linesEPKcPFvPvS2_ES3_(const char* path, TakeLine take, void* context);

namespace {

void must(bool condition) {
    if (!condition) __builtin_trap();
}

// By the end of their names.
struct {
    const char* name;
    std::string text;
} files[] = {{"/syscall", {}}, {"/status", {}}, {"/zoneinfo", {}}, {"/meminfo", {}}, {"/maps", {}}, {"/smaps", {}}};
enum { syscall_file, status_file, zoneinfo_file, meminfo_file, maps_file, smaps_file };

// What the library opens in the place of `path`.
std::string place_of(std::string_view path) {
    static const int memory = memfd_create("file", 0);
    for (const auto& file : files) {
        if (!path.ends_with(file.name)) continue;
        must(ftruncate(memory, 0) == 0 && pwrite(memory, file.text.data(), file.text.size(), 0) == static_cast<ssize_t>(file.text.size()));
        return "/proc/self/fd/" + std::to_string(memory);
    }
    return std::string(path);
}

// Two pages, and none behind.
constexpr std::size_t image_bytes = 2 * 4096;
char* image() {
    static char* const begin = [] {
        void* const p = mmap(nullptr, image_bytes + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(p != MAP_FAILED && mprotect(p, image_bytes, PROT_READ | PROT_WRITE) == 0);
        return static_cast<char*>(p);
    }();
    return begin;
}

// Mappings that are readable lie in the image: what stands before a line's first space is an address there, with one page or two.
std::string leading_to_image(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
        const std::size_t space = line.find(' ');
        if (space != line.npos) {
            char range[64];
            const auto begin = reinterpret_cast<unsigned long>(image());
            std::snprintf(range, sizeof range, "%lx-%lx", begin, begin + (space % 2 + 1) * image_bytes / 2);
            result += range;
            result += line.substr(space);
        } else result += line;
        result += '\n';
    }
    return result;
}

bool is_number(std::string_view word) {
    if (word.starts_with("0x")) return word.size() > 2 && word.find_first_not_of("0123456789abcdef", 2) == word.npos;
    return !word.empty() && word.find_first_not_of("0123456789") == word.npos;
}

// Whether the text has nine numbers, the last of them an address in libc. Behind that anything may stand.
bool is_a_call_in_libc(std::string_view text) {
    std::string_view word;
    for (int i = 0; i < 9; ++i) {
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
        word = text.substr(0, text.find(' '));
        text.remove_prefix(word.size());
        if (i == 8) {
            const bool hexadecimal = word.starts_with("0x");
            word = word.substr(0, word.find_first_not_of(hexadecimal ? "0123456789abcdef" : "0123456789", hexadecimal ? 2 : 0));
        }
        if (!is_number(word)) return false;
    }
    Dl_info libc, found;
    must(dladdr(reinterpret_cast<void*>(&gnu_get_libc_version), &libc) != 0);
    const unsigned long counter = std::stoul(std::string(word.substr(word.size() > 16 ? word.size() - 16 : 0)), nullptr, word.starts_with("0x") ? 16 : 10);
    return dladdr(reinterpret_cast<void*>(counter), &found) != 0 && found.dli_fbase == libc.dli_fbase;
}

void waiting() {
    std::string& text = files[syscall_file].text;
    char libc[32];
    std::snprintf(libc, sizeof libc, "0x%lx", reinterpret_cast<unsigned long>(&gnu_get_libc_version));
    for (std::size_t at; (at = text.find('@')) != text.npos;) text.replace(at, 1, libc);
    const os::WaitSight sight;
    must(sight.sees());  // else nothing is tried
    const bool in_a_wait = sight.is_in_a_wait(os::thread_id());
    // The reader has room for so much.
    must(!in_a_wait || is_a_call_in_libc(std::string_view(text).substr(0, 255)));
    must(in_a_wait || !sight.waits(os::thread_id()));
}

void zones() {
    os::free_bytes_of_node(3);
    std::string& text = files[zoneinfo_file].text;
    text += '\n';
    const Bytes kept = os::kept_bytes_of_node(0);
    must(kept % 4096 == 0);
    // Another node's zone changes nothing.
    text += "Node 1, zone DMA\n  high 77\n  managed 88\n  protection: (5, 6)\n";
    must(os::kept_bytes_of_node(0) == kept);
    // One of its own is counted; 64 MiB stand for none.
    text += "Node 0, zone Movable\n  high 3\n  managed 1000\n  protection: (0, 5, 2)\n";
    const Bytes with_it = os::kept_bytes_of_node(0);
    must(with_it == kept + Bytes{8} * 4096 || (kept == 64 * MiB && with_it == Bytes{8} * 4096));
}

std::vector<std::string> mappings_of(profile::CodeMappings& code) {
    std::vector<std::string> all;
    for (profile::CodeMapping m; code.next(m);) {
        const std::string_view path(m.path, m.path_length);
        must(!path.empty() && path.find('\n') == path.npos);
        must(m.build_id_length <= m.longest_id);
        const std::string_view id(m.build_id, m.build_id_length);
        must(id.find_first_not_of("0123456789abcdef") == id.npos);
        all.push_back(std::string(path) + ' ' + std::string(id));
    }
    return all;
}

void mappings() {
    files[maps_file].text = leading_to_image(files[maps_file].text);
    profile::CodeMappings code;
    const std::vector<std::string> first = mappings_of(code);
    code.again();
    must(mappings_of(code) == first);
}

numalloc_node_statistics resident() {
    numalloc_node_statistics all{};
    Smaps smaps([&](const void* p) { return address_of(p) >= 0x7000 && address_of(p) < 0x9000 ? &all : nullptr; });
    os::for_each_line("/proc/self/smaps", [&](const char* line) { smaps.line(line); });
    return all;
}

// A foreign mapping counts for nothing, one of ours for what it says.
void counted() {
    std::string& text = files[smaps_file].text;
    text += '\n';
    const numalloc_node_statistics before = resident();
    text += "1000-2000 ---p\nRss:  5 kB\nAnonHugePages:  2048 kB\n";
    must(resident().resident_bytes == before.resident_bytes && resident().huge_bytes == before.huge_bytes);
    text += "8000-9000 rw-p\nRss:  12 kB\nAnonHugePages:  7 kB\n";
    const numalloc_node_statistics with_it = resident();
    must(with_it.resident_bytes == before.resident_bytes + 12 * KiB && with_it.huge_bytes == before.huge_bytes + 7 * KiB);
}

}  // namespace

extern "C" long __wrap__ZN8numalloc2os9read_fileEPKcPcm(const char* path, char* buffer, unsigned long capacity) {
    return __real__ZN8numalloc2os9read_fileEPKcPcm(place_of(path).c_str(), buffer, capacity);
}
extern "C" void __wrap__ZN8numalloc2os10read_linesEPKcPFvPvS2_ES3_(const char* path, TakeLine take, void* context) {
    __real__ZN8numalloc2os10read_linesEPKcPFvPvS2_ES3_(place_of(path).c_str(), take, context);
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    for (auto& file : files) {
        file.text = rest.substr(0, rest.find('\0'));
        rest.remove_prefix(std::min(rest.size(), file.text.size() + 1));
    }
    std::memset(image(), 0, image_bytes);
    rest.copy(image(), image_bytes);
    waiting();
    zones();
    mappings();
    counted();
    return 0;
}

#include "os/numa_policy.h"

#include <linux/mempolicy.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/number_list.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/memory.h"
#include "os/optional_call.h"
#include "os/refusals.h"
#include "os/sysfs.h"

#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif

namespace numalloc::os {

namespace {

// MPOL_WEIGHTED_INTERLEAVE of Linux 6.9: an enumerator, which the preprocessor cannot test for.
constexpr int weighted_interleave = 6;

// The kernel reads one bit less than the number passed to it.
constexpr unsigned long kernel_bits = max_os_nodes + 1;

int set_policy(void* p, Bytes bytes, int policy, const NodeMask& nodes, unsigned flags = 0) {
    return static_cast<int>(-optional_call(SYS_mbind, p, bytes, policy, nodes.data(), kernel_bits, flags));
}

// The value of a line "Name:   123 kB" of a meminfo file, in bytes; 0 if it is missing.
Bytes field(const char* text, const char* name) {
    const char* p = std::strstr(text, name);
    if (p == nullptr) return 0;
    p += std::strlen(name);
    while (*p == ' ') ++p;
    const long kilobytes = take_number(p);
    return kilobytes < 0 ? 0 : static_cast<Bytes>(kilobytes) * KiB;
}

}  // namespace

int bind(void* p, Bytes bytes, unsigned os_node, BindMode mode) {
    NodeMask nodes;
    nodes.add(os_node);
    return refused_binding.note(set_policy(p, bytes, mode == BindMode::strict ? MPOL_BIND : MPOL_PREFERRED, nodes));
}

int bind_and_move(void* p, Bytes bytes, unsigned os_node) {
    NodeMask nodes;
    nodes.add(os_node);
    const int error = set_policy(p, bytes, MPOL_PREFERRED, nodes, MPOL_MF_MOVE);
    return error == EFAULT ? error : refused_binding.note(error);
}

int bind_within(void* p, Bytes bytes, unsigned os_node, const NodeMask& nodes) {
    if (const int error = refused_binding.note(set_policy(p, bytes, MPOL_BIND, nodes)); error != 0) return error;
    (void)optional_call(SYS_set_mempolicy_home_node, p, bytes, os_node, 0);
    return 0;
}

int bind_balanced(void* p, Bytes bytes, unsigned os_node, const NodeMask& nodes) {
    if (const int error = set_policy(p, bytes, MPOL_BIND | MPOL_F_NUMA_BALANCING, nodes); error != 0) return error;
    return static_cast<int>(-optional_call(SYS_set_mempolicy_home_node, p, bytes, os_node, 0));
}

bool kernel_balances(unsigned os_node, const NodeMask& nodes) {
    char text[16];
    if (read_file("/proc/sys/kernel/numa_balancing", text, sizeof text) <= 0) return false;
    const char* p = text;
    if ((take_number(p) & 1) == 0) return false;
    void* const page = map(page_size());
    if (page == nullptr) return false;
    const bool works = bind_balanced(page, page_size(), os_node, nodes) == 0;
    unmap_unused(address_of(page), page_size());
    return works;
}

int interleave(void* p, Bytes bytes, const NodeMask& nodes) {
    // Without weights this policy equals MPOL_INTERLEAVE; before Linux 6.9 it fails with EINVAL.
    if (set_policy(p, bytes, weighted_interleave, nodes) == 0) return 0;
    return refused_binding.note(set_policy(p, bytes, MPOL_INTERLEAVE, nodes));
}

int bind_to(void* p, Bytes bytes, const NodeMask& nodes) {
    return refused_binding.note(set_policy(p, bytes, MPOL_BIND, nodes));
}

int bind_as(const void* from, void* p, Bytes bytes) {
    int mode = MPOL_DEFAULT;
    NodeMask nodes;
    const long result = optional_call(SYS_get_mempolicy, &mode, nodes.data(), kernel_bits, from, MPOL_F_ADDR);
    return failed(result) ? static_cast<int>(-result) : refused_binding.note(set_policy(p, bytes, mode, nodes));
}

int unbind(void* p, Bytes bytes) { return set_policy(p, bytes, MPOL_DEFAULT, {}); }

int move_to_node(void* p, Bytes bytes, unsigned os_node) {
    NodeMask nodes;
    nodes.add(os_node);
    const int error = set_policy(p, bytes, MPOL_BIND, nodes, MPOL_MF_MOVE | MPOL_MF_STRICT);
    return refused_moves.note(error == EIO ? ENOMEM : error);
}

int node_of_page(const void* p) {
    const void* page = p;
    int status = -1;
    const long result = optional_call(SYS_move_pages, 0, 1, &page, 0, &status, 0);
    return failed(result) ? static_cast<int>(result) : status;
}

bool nodes_of_pages(const void* const* page, int* node, unsigned count) {
    return !failed(optional_call(SYS_move_pages, 0, count, page, 0, node, 0));
}

int ask_for_page(const void* p) {
    unsigned char present = 0;
    const long result = optional_call(SYS_mincore, address_of(p) & ~(page_size() - 1), page_size(), &present);
    if (failed(result)) return result == -ENOMEM ? -EFAULT : static_cast<int>(result);
    return (present & 1) != 0 ? 0 : -ENOENT;
}

Bytes free_bytes_of_node(unsigned os_node) {
    Text<64> path;
    path << "/sys/devices/system/node/node" << os_node << "/meminfo";
    char text[4096];
    if (read_file(path.c_str(), text, sizeof text) <= 0) return ~Bytes{0};
    return field(text, "MemFree:") + field(text, "Inactive(file):");
}

namespace {

constexpr std::uint32_t free_bytes_keep = 100;  // milliseconds

// One cache line each: threads of different nodes write them.
struct alignas(64) Reading {
    std::atomic<std::uint32_t> at;
    std::atomic<Bytes> bytes_plus_one;  // 0: never read
};
constinit Reading readings[max_os_nodes];

}  // namespace

Bytes recent_free_bytes_of_node(unsigned os_node) {
    Reading& reading = readings[os_node];
    const std::uint32_t now = milliseconds();
    const Bytes known = reading.bytes_plus_one.load(std::memory_order_acquire);
    if (known != 0 && now - reading.at.load(std::memory_order_relaxed) < free_bytes_keep) return known - 1;
    const Bytes bytes = free_bytes_of_node(os_node);
    if (bytes == ~Bytes{0}) return bytes;
    reading.at.store(now, std::memory_order_relaxed);
    reading.bytes_plus_one.store(bytes + 1, std::memory_order_release);
    return bytes;
}

namespace {

// Reads the number after `name` in a line of /proc/zoneinfo; the largest, if there are several (protection). `high ` is
// a zone's own value, `high:` a CPU's.
bool value_in(const char* line, const char* name, std::uint64_t& value) {
    while (*line == ' ') ++line;
    const std::size_t length = strlen(name);
    if (strncmp(line, name, length) != 0) return false;
    value = 0;
    std::uint64_t number = 0;
    for (const char* p = line + length; *p != '\0'; ++p) {
        number = *p >= '0' && *p <= '9' ? number * 10 + static_cast<std::uint64_t>(*p - '0') : 0;
        value = max_of(value, number);
    }
    return true;
}

// Adds up, from the lines of /proc/zoneinfo, the pages that the zones of one node keep.
class KeptByZones {
public:
    explicit KeptByZones(unsigned os_node) { header_ << "Node " << os_node << ','; }
    void line(const char* text) {
        if (strncmp(text, "Node ", 5) == 0) {
            end_zone();
            mine_ = strncmp(text, header_.c_str(), header_.size()) == 0;
        } else if (mine_) {
            value_in(text, "high ", high_) || value_in(text, "managed ", managed_) ||
                value_in(text, "protection:", protection_);
        }
    }
    std::uint64_t pages() {
        end_zone();
        return pages_;
    }

private:
    void end_zone() {
        pages_ += min_of(managed_, high_ + protection_);
        high_ = managed_ = protection_ = 0;
    }

    Text<32> header_;
    bool mine_ = false;
    std::uint64_t high_ = 0;
    std::uint64_t managed_ = 0;
    std::uint64_t protection_ = 0;
    std::uint64_t pages_ = 0;
};

}  // namespace

Bytes kept_bytes_of_node(unsigned os_node) {
    KeptByZones kept(os_node);
    for_each_line("/proc/zoneinfo", [&](const char* line) { kept.line(line); });
    const std::uint64_t pages = kept.pages();
    return pages == 0 ? 64 * MiB : pages * page_size();
}

TaskPolicy task_policy(NodeMask& nodes) {
    int mode = MPOL_DEFAULT;
    nodes.clear();
    if (failed(optional_call(SYS_get_mempolicy, &mode, nodes.data(), kernel_bits, 0, 0))) return TaskPolicy::none;
    mode &= ~MPOL_MODE_FLAGS;
    if (mode == MPOL_DEFAULT) return TaskPolicy::none;
    // The second is "local" before Linux 5.14.
    if (mode == MPOL_LOCAL || (mode == MPOL_PREFERRED && nodes.empty())) return TaskPolicy::local;
    return mode == MPOL_BIND ? TaskPolicy::membind : TaskPolicy::other;
}

}  // namespace numalloc::os

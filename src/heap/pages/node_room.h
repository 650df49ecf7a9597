// How much memory a node can still promise under strict binding, where no other node serves its pages: the kernel
// answers the first touch of a page that the node does not have with the OOM killer.
//
//   free memory of the node = kept by the kernel + policy::strict::margin + what may be granted
//
// One reading of the free memory (a text in /sys) serves several requests: policy::strict::granted_at_once bytes, for
// policy::strict::grant_period.
//
// Invariant: the grants since a reading are no more than it found, less what the kernel keeps and the margin.
//
// Not thread-safe: the page heap's growth lock guards it. The caller of grant() holds the lock until it has populated
// the pages, because a reading before that would count them as free.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "os/clock.h"
#include "os/numa_policy.h"

namespace numalloc {

namespace policy::strict {

// Strict binding treats a node as full when its free memory is down to the kernel's reserve and 16 MiB: some of that is
// on the CPUs' own free lists, and other processes take some between two readings.
constexpr Bytes margin = 16 * MiB;
// One reading of a node's free memory (a text in /sys) serves 8 MiB or 100 ms, so that half of the margin remains for
// other processes.
constexpr Bytes granted_at_once = margin / 2;
constexpr std::uint32_t grant_period = 100;  // milliseconds

}  // namespace policy::strict

class NodeRoom {
public:
    // `os_node`: the kernel's number of the node. Call it before grant().
    void start(std::uint16_t os_node) {
        os_node_ = os_node;
        kept_by_kernel_ = os::kept_bytes_of_node(os_node);
    }

    // Whether the node has room for `bytes` more, which the caller populates next.
    bool grant(Bytes bytes) {
        const std::uint32_t now = os::milliseconds();
        if (bytes > left_ || now - read_at_ > policy::strict::grant_period) {
            const Bytes free = os::free_bytes_of_node(os_node_);
            const Bytes keep = kept_by_kernel_ + policy::strict::margin;
            left_ = 0;
            if (free < keep || free - keep < bytes) return false;
            left_ = max_of(bytes, min_of(free - keep, policy::strict::granted_at_once));
            read_at_ = now;
        }
        left_ -= bytes;
        return true;
    }

private:
    std::uint16_t os_node_ = 0;
    Bytes kept_by_kernel_ = 0;   // bytes of the free memory that the kernel reserves; constant
    Bytes left_ = 0;             // bytes that may still be granted by the last reading
    std::uint32_t read_at_ = 0;  // milliseconds: when that was
};

}  // namespace numalloc

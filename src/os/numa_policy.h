// Where the kernel allocates the pages of a range. Nodes are the kernel's numbers here. Every function is thread-safe
// and keeps errno. A refusal (EPERM or ENOSYS in a container) is reported by the result only: placement suffers,
// correctness does not.
#pragma once

#include "base/bit_set.h"
#include "base/bits.h"

namespace numalloc::os {

constexpr unsigned max_os_nodes = 1024;
using NodeMask = BitSet<max_os_nodes>;

enum class BindMode {
    preferred,  // from another node when this one is full
    strict,     // from no other node: a full node wakes the OOM killer, so check free_bytes_of_node first
};

// These set where pages of the range will come from; pages that exist stay where they are. All return 0 or the kernel's
// error, positive.
int bind(void* p, Bytes bytes, unsigned os_node, BindMode mode);
// As bind() with `preferred`; pages that only this process has move there, if they can. EFAULT if the range has a hole.
int bind_and_move(void* p, Bytes bytes, unsigned os_node);
// From `os_node` while it has room, then from the nearest others of `nodes`. Before Linux 5.17, and where a filter
// refuses set_mempolicy_home_node(), from the one of `nodes` that is nearest to the thread that touches the page first.
int bind_within(void* p, Bytes bytes, unsigned os_node, const NodeMask& nodes);
// As bind_within() on Linux 5.17 and later. Where the kernel balances memory, it may besides move the pages within
// `nodes` to the threads that use them. EINVAL before Linux 5.12, ENOSYS before 5.17; then bind() is the next to try.
// Before 6.8 a huge page comes from the node of the thread that touches it first.
int bind_balanced(void* p, Bytes bytes, unsigned os_node, const NodeMask& nodes);
// Whether the kernel balances memory between nodes (AutoNUMA) and has bind_balanced(). Reads a file, and tries it.
bool kernel_balances(unsigned os_node, const NodeMask& nodes);
// From all `nodes` in turn, by the kernel's weights if it has some (Linux 6.9).
int interleave(void* p, Bytes bytes, const NodeMask& nodes);
// Only from the nearest of `nodes` that has room.
int bind_to(void* p, Bytes bytes, const NodeMask& nodes);
// By the policy of the page at `from`.
int bind_as(const void* from, void* p, Bytes bytes);
// By the program's own policy if it has one, otherwise by first touch.
int unbind(void* p, Bytes bytes);

// Moves the pages of the range to the node and binds it strictly. ENOMEM if not all could be moved; otherwise 0 or the
// kernel's error.
int move_to_node(void* p, Bytes bytes, unsigned os_node);

// The node of the page at `p`, or -errno: -ENOENT or -EFAULT, depending on the kernel's version, if it was never
// written.
int node_of_page(const void* p);
// The same for `count` pages, by one system call. false if the call fails.
bool nodes_of_pages(const void* const* page, int* node, unsigned count);

// 0 if the page at `p` is in memory, -ENOENT if it is not, -EFAULT if nothing is mapped there, or another -errno. Makes
// no NUMA system call.
int ask_for_page(const void* p);

// Bytes that the node can supply without taking them from programs: free memory and clean cache. ~0 if /sys does not
// say. Reads a file: for slow paths only.
Bytes free_bytes_of_node(unsigned os_node);

// The same, up to 100 ms old.
Bytes recent_free_bytes_of_node(unsigned os_node);

// Bytes of a node that the kernel keeps for itself (the zones' high watermarks and lowmem reserves): below that it
// reclaims, and then kills, before it allocates a bound page. 64 MiB if /proc does not say. Reads a long file: call it
// once per node.
Bytes kept_bytes_of_node(unsigned os_node);

// The memory policy that the calling thread began with, as set by numactl.
enum class TaskPolicy {
    none,     // the kernel's default
    local,    // the same, but the kernel does not balance
    membind,  // these nodes only
    other,    // interleaved or preferred: the user decides where memory goes
};
TaskPolicy task_policy(NodeMask& nodes);

}  // namespace numalloc::os

// Where the kernel takes the pages of a range from. Nodes are the kernel's numbers here. Every
// function is thread-safe and keeps errno; a refusal (EPERM, ENOSYS in a container) is a quiet
// result: placement suffers, correctness does not.
#pragma once

#include "base/bit_set.h"
#include "base/bits.h"

namespace numalloc::os {

constexpr unsigned max_os_nodes = 1024;
using NodeMask = BitSet<max_os_nodes>;

enum class BindMode {
    preferred,  // another node when this one is full
    strict,     // no other node: a full node wakes the OOM killer, so check free_bytes_of_node first
};

// Where pages of the range come from, from now on; pages already there stay where they are. All return
// 0, or the kernel's error.
int bind(void* p, Bytes bytes, unsigned os_node, BindMode mode);
// From `os_node` while it has room, then from the nearest others of `nodes`. ENOSYS before Linux 5.17.
int bind_within(void* p, Bytes bytes, unsigned os_node, const NodeMask& nodes);
// From all `nodes` in turn, by the kernel's weights where it has some (Linux 6.9).
int interleave(void* p, Bytes bytes, const NodeMask& nodes);
// From the nearest of `nodes` that has room, and no other.
int bind_to(void* p, Bytes bytes, const NodeMask& nodes);
// From where those of `from` come.
int bind_as(const void* from, void* p, Bytes bytes);
// From where the program's own policy says, if it has one, or where they are touched first.
int unbind(void* p, Bytes bytes);

// Moves the pages of the range to the node and binds it strictly. ENOMEM when not all could be moved;
// else 0 or the kernel's error.
int move_to_node(void* p, Bytes bytes, unsigned os_node);

// The node on which the page of `p` lies, or -errno: -ENOENT or -EFAULT where it was never
// written, by the kernel's version.
int node_of_page(const void* p);
// The same of many pages, by one call. false where the kernel does not tell of any.
bool nodes_of_pages(const void* const* page, int* node, unsigned count);

// 0 where the page of `p` is in memory, or -errno: -ENOENT where it is not, -EFAULT where nothing is mapped. No call
// that has to do with nodes.
int ask_for_page(const void* p);

// Bytes that the node can give without taking them from programs: free, or clean cache. ~0
// where /sys does not say. Reads a file: for slow paths only.
Bytes free_bytes_of_node(unsigned os_node);

// The same, up to 100 ms old.
Bytes recent_free_bytes_of_node(unsigned os_node);

// Bytes of a node that the kernel keeps for itself: below them it reclaims, and then kills, before
// it gives a bound page (the zones' high watermarks and lowmem reserves). A guess of 64 MiB where
// /proc does not say. Reads a long file: once a node.
Bytes kept_bytes_of_node(unsigned os_node);

// The policy that the calling thread began with, as numactl sets it.
enum class TaskPolicy {
    none,     // the kernel's default, or local
    membind,  // these nodes only
    other,    // interleaved or preferred: the user has said where memory goes
};
TaskPolicy task_policy(NodeMask& nodes);

}  // namespace numalloc::os

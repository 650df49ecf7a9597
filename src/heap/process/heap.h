// The heap of the process: its address space and the heaps of its nodes, opened when they are
// first needed. Spilling lives here: what a full node cannot give comes from the nearest other.
//
// The interleaved heap is one more, with a NodeId behind the nodes' own: to threads' lists, rings and
// remote caches it is a node like any other.
//
// Thread-safe after start().
#pragma once

#include <atomic>

#include "heap/process/ablation.h"
#include "heap/space/hardened.h"
#include "options/options.h"
#include "os/topology.h"

namespace numalloc {

// An object for a program; nullptr with no memory. Two registers.
struct Allocation {
    void* p = nullptr;
    bool zeroed = false;  // a small one: every byte but its first word, which may have held a list, is 0
};

struct HeapOptions {
    MemoryBinding memory_binding = MemoryBinding::preferred;
    os::NodeMask bound_nodes;  // all memory comes from these, the kernel's numbers; empty: from any
    HugePages huge_pages = HugePages::system;
    std::int32_t purge_delay = 1000;  // milliseconds
#if defined(NUMALLOC_EXPERIMENTS)
    Ablations ablations;
#endif
    SpaceOptions space;
    Bytes thread_slot = 0;  // bytes of a thread heap
};

struct Location;

// Over which nodes memory lies, if not on one. Nodes are the kernel's numbers.
struct Spread {
    enum class How : std::uint8_t { not_at_all, interleaved, bound, weighted };
    How how = How::not_at_all;
    const std::uint8_t* weights = nullptr;  // weighted: one for each of `nodes`, ascending, none of them 0
    os::NodeMask nodes;
};

class ProcessHeap {
public:
    // Chooses the address space; before any other call, by one thread. false: no memory at all.
    bool start(const HeapOptions& options);
    bool started() const { return space_.regions() != 0; }

    const AddressSpace& space() const { return space_; }
    const HeapOptions& options() const { return options_; }
    const Mechanisms& mechanisms() const { return mechanisms_; }
    // Most objects of a batch, the unit of hand-over.
    std::uint32_t batch(ClassId c) const { return mechanisms_.batch(c); }
    unsigned nodes() const { return nodes_; }
    // All heaps: one a node, and after them the interleaved one where there are several nodes.
    unsigned heaps() const { return space_.regions(); }
    // The heap whose pages lie on all nodes in turn; the only node's where there is one.
    NodeId interleaved() const { return os::topology().interleaved(); }

    // The node's heap, or nullptr where its metadata found no memory.
    NodeHeap* node(NodeId n) NUMALLOC_EXCLUDES(lock_) {
        NodeHeap* heap = opened(n);
        return heap != nullptr ? heap : open(n);
    }
    // The same, but only if it is in use already.
    NodeHeap* opened(NodeId n) const { return open_[n.value].load(std::memory_order_acquire); }
    // The node whose region contains `p`, which is ours; its heap is open.
    NodeHeap* owner(const void* p) const { return opened(NodeId{space_.region_of(p)}); }
    bool contains(const void* p) const { return space_.contains(p); }

    // Objects of a class from the node, or one object from the nearest node that has any.
    Supply take_small(NodeId n, ClassId c, std::uint32_t want, unsigned shard = 0);
    // An object for the heap itself, past the threads' lists. nullptr with no memory left.
    void* take_alone(NodeId n, ClassId c);
    void give_alone(void* p, ClassId c);
    // A big object, or bags for a bound heap's objects of class `c`; from the nearest node that has them.
    void* take_big(NodeId n, Bytes bytes, Bytes alignment, BagState state = BagState::big, ClassId c = no_class);

    // These take what locate() found (locate.h).

    // Frees a big object.
    void give_big(Location at);
    // A big object becomes `n` bytes long without being copied: where it is, if it may stay there, or else with its
    // pages at a longer place of the heap `there`. nullptr where that cannot be.
    void* resize(Location at, Bytes n, bool may_stay, NodeId there);
    // Moves the pages of a big object, which keeps its address: 0, EINVAL for what is none, ENOMEM
    // where not all of it could be moved, or what the kernel says against binding.
    int move_big(Location at, NodeId to);
    // The pages of a big object that was just taken will lie so: what it holds is lost. Refused, they come by first
    // touch.
    void spread(Location at, const Spread& how);
    // The same for a run of a bound heap; nothing for Spread::not_at_all.
    void spread_run(void* start, const Spread& how);
    // The same as another big object's, where that is spread.
    void spread_as(Location other, Location at);
    // Gives up the pages of a range that was spread, which becomes its node's own again.
    static void bring_back(PageHeap& pages, BagIndex first, std::uint32_t bags);
    // Moves all big objects that a thread allocated: the bytes of those that are on the node then.
    Bytes move_blocks_of(std::int32_t thread, NodeId to);
    // Where the pages of an object are meant to be: its owner's node, or where it was moved. no_node for the side heap.
    NodeId node_of(Location at) const;
    // Whether any block is elsewhere than its address says.
    bool any_moved() const { return moved_.load(std::memory_order_relaxed) != 0; }

    // The shard of its node's bags that the n-th thread heap has.
    unsigned open_shard(NodeHeap* node, std::uint32_t n) NUMALLOC_REQUIRES(node->attaching);

    // Thread heaps of ended threads go back, where there are many.
    void give_back_thread_heaps();

    // The rings' objects go back to their bags: of shards that nobody uses, or of `all`.
    void drain(bool all);
    // Gives back to the OS what is due, a bounded part of it. The bytes; 0: nothing is due any more.
    Bytes purge_due();
    // Everything that is free.
    Bytes purge_all();
    // How long free memory may rest from now on: HeapOptions::purge_delay.
    void set_purge_delay(std::int32_t delay) NUMALLOC_EXCLUDES(lock_);

private:
    NodeHeap* open(NodeId n) NUMALLOC_EXCLUDES(lock_);
    NodeHeap* make(NodeId n) NUMALLOC_REQUIRES(lock_);
    RegionPages pages_of(NodeId n) const;
    unsigned shards_of(NodeHeap* node) const NUMALLOC_REQUIRES(node->attaching);
    bool was_moved(Location at) const;
    void note_spread(Location at);
    bool resize_in_place(Location at, std::uint32_t bags);
    void* grow_elsewhere(Location at, std::uint32_t bags);
    void bring_back(Location at, std::uint32_t from_bag);
    Bytes purge(bool all);
    NodeHeap* candidate(NodeId n, unsigned k);
    void note_spill(NodeId n, NodeId served_by, Bytes bytes);
    unsigned candidates(NodeId n) const;

    AddressSpace space_;
    HeapOptions options_;
    Mechanisms mechanisms_;
    unsigned nodes_ = 0;
    RegionPages pages_;  // of all nodes, but for their place
    std::atomic<NodeHeap*>* open_ = nullptr;
    std::atomic<std::uint32_t> moved_{0};       // blocks that move_big() moved and that live
    os::Lock<os::LockRank::thread_pool> lock_;  // one node is opened at a time; what open_ points to is read without
};

extern ProcessHeap process_heap;

// The nodes, by our numbers, that the calling thread's requests may spill to; nullptr for all.
extern NUMALLOC_THREAD_LOCAL const os::NodeMask* thread_spill_limit;

// Bags for a size; 0 for sizes that no region can hold.
constexpr std::uint32_t bags_for(Bytes bytes) {
    return bytes > longest_region ? 0 : static_cast<std::uint32_t>(divide_up(bytes, bag_bytes));
}
constexpr std::uint32_t bags_for_big(Bytes n) { return n > longest_region ? 0 : bags_for(n + tail_bytes); }

}  // namespace numalloc

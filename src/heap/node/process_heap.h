// The heap of the process: its address space and the heaps of its nodes, each opened at its first use. Spilling is
// here: if a node is full, the nearest other node serves the request.
//
// The interleaved heap is one more heap, and its NodeId follows those of the nodes. Threads' lists, rings and remote
// caches treat it like any other node.
//
// Where the kernel balances memory between nodes (AutoNUMA), each node has a second heap, for blocks of which malloc
// gets 16 MiB or more at once while memory is local: the balanced one. Its pages come from its node, but the kernel may
// move them to the threads that use them, as it does with malloc's under glibc. A program that fills a block with one
// thread and then works on it with many needs that. Smaller blocks are not balanced: the kernel takes a free by a
// thread of another node for a use, and would move them.
//
//   NodeId   0 .. nodes - 1   nodes         nodes + 1 .. 2 * nodes
//            nodes            interleaved   balanced, of node NodeId - nodes - 1
//
// Thread-safe after start().
#pragma once

#include <atomic>

#include "heap/node/ablation.h"
#include "heap/space/hardened.h"
#include "options/options.h"
#include "os/topology.h"

namespace numalloc {

namespace policy::balancing {

// With less, a part of a huge page that the kernel moves would hold other blocks.
constexpr Bytes from = 16 * MiB;
// Of the mappings that moved blocks and advice may cost a process, all balanced heaps may have 1/8.
constexpr std::uint32_t part_of_mappings = 8;

}  // namespace policy::balancing

// An object for a program; `p` is nullptr without memory. Fits two registers.
struct Allocation {
    void* p = nullptr;
    bool zeroed = false;  // all bytes are 0, except the first word of a small object, which may hold a list link
    bool reused = false;  // the last of the thread's list: it freed it not long ago
};

struct HeapOptions {
    MemoryBinding memory_binding = MemoryBinding::preferred;
    os::NodeMask bound_nodes;      // all memory comes from these nodes (the kernel's numbers); empty: from any
    bool names_nodes = false;      // the user names nodes for memory
    bool kernel_balances = false;  // os::kernel_balances(): with `preferred`, nodes have balanced heaps
    HugePages huge_pages = HugePages::system;
    std::int32_t purge_delay = 1000;  // milliseconds
#if defined(NUMALLOC_EXPERIMENTS)
    Ablations ablations;
#endif
    SpaceOptions space;
    Bytes thread_slot = 0;  // bytes of a thread heap
};

struct Location;
struct Resize;

class ProcessHeap {
public:
    // Chooses the address space. Called once, before any other function. Returns false without memory.
    bool start(const HeapOptions& options);
    bool started() const { return space_.regions() != 0; }

    const AddressSpace& space() const { return space_; }
    const HeapOptions& options() const { return options_; }
    const Mechanisms& mechanisms() const { return mechanisms_; }
    // Most objects of a batch.
    std::uint32_t batch(ClassId c) const { return mechanisms_.batch(c); }
    unsigned nodes() const { return nodes_; }
    // Number of heaps: of nodes, interleaved and balanced ones.
    unsigned heaps() const { return space_.regions(); }
    // The same without the balanced heaps, which statistics count as parts of their nodes.
    unsigned counted_heaps() const { return balances_ ? nodes_ + 1 : heaps(); }
    // The heap as which statistics count heap `n`.
    NodeId counted_as(NodeId n) const { return n.value <= nodes_ ? n : NodeId{n.value - nodes_ - 1}; }
    // The heap for a block whose node neither the program nor its user has named.
    NodeId heap_for_block(NodeId n, Bytes bytes) const {
        const bool balanced = balances_ && bytes >= policy::balancing::from && n.value < nodes_;
        return balanced ? NodeId{nodes_ + 1 + n.value} : n;
    }
    // The heap whose pages are interleaved over all nodes; with one node, that node's heap.
    NodeId interleaved() const { return os::topology().interleaved(); }

    // The node's heap, opened if needed. nullptr without memory for its metadata.
    NodeHeap* node(NodeId n) NUMALLOC_EXCLUDES(lock_) {
        NodeHeap* heap = opened(n);
        return heap != nullptr ? heap : open(n);
    }
    // The node's heap if it is open, else nullptr.
    NodeHeap* opened(NodeId n) const { return open_[n.value].load(std::memory_order_acquire); }
    // The heap whose region contains `p`; nullptr if it is not open. contains(p) must hold.
    NodeHeap* owner(const void* p) const { return opened(NodeId{space_.region_of(p)}); }
    bool contains(const void* p) const { return space_.contains(p); }

    // Takes about `want` objects of a class, or a whole batch, from the node. If the node is full, takes one object
    // from the nearest node that has one.
    Supply take_small(NodeId n, ClassId c, std::uint32_t want, unsigned shard = 0);
    // An object for the heap's own data, without the threads' lists. nullptr without memory.
    void* take_alone(NodeId n, ClassId c);
    void give_alone(void* p, ClassId c);
    // A big object, or a run for a bound heap's objects of class `c`, from the nearest node that has the memory.
    void* take_big(NodeId n, Bytes bytes, Bytes alignment, BagState state = BagState::big, ClassId c = no_class);

    // The functions below take what locate() found (locate.h).

    // Frees a big object.
    void give_big(Location at);
    // Makes a big object more than small_limit bytes long: in place if it may stay, else by moving its pages to a
    // longer run if the target is the node of its region. Returns the new address, or nullptr if neither is possible.
    void* resize_big(const Resize& resize);
    // Moves the pages of a big object, which keeps its address. Returns 0, EINVAL if it is not a big object, ENOMEM if
    // some pages could not be moved, or the kernel's error if it refuses to bind.
    int move_big(Location at, NodeId to);
    // Discards the pages of a spread range and restores its node's own policy.
    static void bring_back(PageHeap& pages, BagIndex first, std::uint32_t bags);
    // Moves all big objects that the thread allocated. Returns the bytes of those that are on the node afterwards.
    Bytes move_blocks_of(std::int32_t thread, NodeId to);
    // Whether the kernel may have moved pages of the object, or may do so, without the heap's knowledge.
    bool may_stray(Location at) const;
    // Notes that the pages of a big object are spread over several nodes (program_heaps/spread.h).
    void note_spread(Location at);
    // Whether it lies on several nodes so.
    bool is_spread(Location at) const;
    // The node of an object's region, or the node that its pages were moved to. no_node for the side heap.
    NodeId node_of(Location at) const;
    // Whether any block is moved or spread, so that its address does not tell where its pages are.
    bool any_moved() const { return moved_.load(std::memory_order_relaxed) != 0; }

    // In the child of a fork: memory that it has from its parent is no longer bound. See inherited.cpp.
    void fork_child();
    // Whether the object lies in such memory.
    static bool is_inherited(Location at);
    // Called when the program names a node for memory, before it gets that memory.
    void name_nodes() {
        if (inheritance_.load(std::memory_order_acquire) != Inheritance::bound) bind_inherited();
    }

    // Opens the shard of the node's bags that the n-th thread heap uses, and returns its number.
    unsigned open_shard(NodeHeap* node, std::uint32_t n) NUMALLOC_REQUIRES(node->attaching);

    // Returns the memory of ended threads' heaps to the system if there are many.
    void give_back_thread_heaps();

    // Returns the objects in all rings to their bags.
    void drain();
    // Purges a bounded part of the memory that is due. Returns its bytes; 0 if nothing more is due.
    Bytes purge_due();
    // Purges all free memory, or of that the free runs of bags. Returns the bytes.
    Bytes purge_all();
    Bytes purge_runs() { return purge(true); }
    // Bytes that are mapped for objects and in no bag in use, on all nodes.
    Bytes mapped_free();
    // Sets HeapOptions::purge_delay (milliseconds) for all nodes.
    void set_purge_delay(std::int32_t delay) NUMALLOC_EXCLUDES(lock_);

private:
    void bind_inherited();
    NodeHeap* open(NodeId n) NUMALLOC_EXCLUDES(lock_);
    NodeHeap* make(NodeId n) NUMALLOC_REQUIRES(lock_);
    static bool has_strayed(const NodeHeap& owner, const char* start, Bytes bytes);
    static bool discard_if_strayed(Location at, std::uint32_t from_bag);
    RegionPages pages_of(NodeId n) const;
    unsigned shards_of(NodeHeap* node, std::uint32_t number) const NUMALLOC_REQUIRES(node->attaching);
    bool was_moved(Location at) const;
    bool resize_in_place(Location at, std::uint32_t bags);
    bool grow_into_room(Location at, std::uint32_t bags);
    void* grow_elsewhere(Location at, std::uint32_t bags, bool keeps_pages);
    void bring_back(Location at, std::uint32_t from_bag);
    Bytes purge(bool all);
    NodeHeap* candidate(NodeId n, unsigned k);
    void note_spill(NodeId n, NodeId served_by, Bytes bytes);
    unsigned candidates(NodeId n) const;

    AddressSpace space_;
    HeapOptions options_;
    Mechanisms mechanisms_;
    unsigned nodes_ = 0;
    bool balances_ = false;  // there are balanced heaps
    RegionPages pages_;      // the same for all nodes, except the place
    std::atomic<NodeHeap*>* open_ = nullptr;
    std::atomic<std::uint32_t> moved_{0};  // blocks in use that are moved or spread
    // Of what a child inherits: unbound at a fork; to be bound, because the program named a node; bound.
    enum class Inheritance : std::uint8_t { by_touch, to_bind, bound };
    std::atomic<Inheritance> inheritance_{Inheritance::by_touch};
    os::Lock<os::LockRank::thread_pool> lock_;  // held to open a node; the entries of open_ are read without it
};

extern ProcessHeap process_heap;

// The nodes (numalloc's numbers) to which the calling thread's requests may spill; nullptr for all.
extern NUMALLOC_THREAD_LOCAL const os::NodeMask* thread_spill_limit;

// Number of bags for a size; 0 if no region can hold it.
constexpr std::uint32_t bags_for(Bytes bytes) {
    return bytes > longest_region ? 0 : static_cast<std::uint32_t>(divide_up(bytes, bag_bytes));
}
constexpr std::uint32_t bags_for_big(Bytes n) { return n > longest_region ? 0 : bags_for(n + tail_bytes); }

}  // namespace numalloc

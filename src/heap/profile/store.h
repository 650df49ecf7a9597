// The records: each live block by itself, and freed blocks summed up by stack and nodes. Records for which there was no
// memory are counted.
#pragma once

#include <atomic>

#include "heap/profile/stack_table.h"
#include "os/lock.h"

namespace numalloc::profile {

// The kernel's number of a node.
using OsNode = std::int16_t;
constexpr OsNode unknown_node = -1;  // not known; for pages also: none exists yet
constexpr OsNode not_freed = -2;

// A recorded block.
struct Block {
    const void* address = nullptr;
    const void* heap = nullptr;  // the bound heap that it belongs to, or nullptr
    const KeptStack* stack = nullptr;
    Bytes size = 0;      // bytes that the program requested
    double objects = 0;  // number of objects that it stands for
    OsNode allocated_on = unknown_node;

    const void* key() const { return address; }
    bool used() const { return address != nullptr; }
    static std::uint64_t hash(const void* p);
};

// The nodes of blocks of one stack.
struct Site {
    const KeptStack* stack = nullptr;
    OsNode allocated_on = unknown_node;  // the thread's node
    OsNode pages_on = unknown_node;
    OsNode freed_on = not_freed;  // the freeing thread's node

    bool operator==(const Site&) const = default;
};

struct Amount {
    double objects = 0;
    double bytes = 0;
    void add(double more, Bytes size) {
        objects += more;
        bytes += more * static_cast<double>(size);
    }
};

struct SiteUse {
    Site site;
    Amount allocated;
    Amount in_use;

    const Site& key() const { return site; }
    bool used() const { return site.stack != nullptr; }
    static std::uint64_t hash(const Site& site);
};

// Thread-safe.
class Store {
public:
    // Adds a block and its stack. Returns false without memory, which is counted.
    bool add(Block block, const Stack& stack) NUMALLOC_EXCLUDES(lock_);
    // Puts back a block that was taken out.
    void put_back(const Block& block) NUMALLOC_EXCLUDES(lock_);
    // Removes and returns the block at `p`. Returns an unused block if there is none.
    Block take_out(const void* p) NUMALLOC_EXCLUDES(lock_);
    // Removes and returns the heap's first block from `place` in the table on. Returns an unused one if there is none:
    // other threads may have moved some to places before.
    Block take_out_of(const void* heap, std::size_t& place) NUMALLOC_EXCLUDES(lock_);
    void set_size(const void* p, Bytes size) NUMALLOC_EXCLUDES(lock_);
    // Counts a block that was taken out as freed.
    void add_freed(const Block& block, OsNode pages_on, OsNode freed_on) NUMALLOC_EXCLUDES(lock_);

    void count_lost() { lost_.fetch_add(1, std::memory_order_relaxed); }
    std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }
    std::size_t live() NUMALLOC_EXCLUDES(lock_);

    // Adds up all records by site. `pages_of(block)` returns the node of a live block's pages. Returns false without
    // memory.
    using PagesOf = OsNode (*)(const Block& block);
    bool sum_up(Table<SiteUse>& into, PagesOf pages_of) NUMALLOC_EXCLUDES(lock_);

private:
    os::Lock<os::LockRank::profile> lock_;
    StackTable stacks_ NUMALLOC_GUARDED_BY(lock_);
    Table<Block> live_ NUMALLOC_GUARDED_BY(lock_);
    Table<SiteUse> freed_ NUMALLOC_GUARDED_BY(lock_);
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace numalloc::profile

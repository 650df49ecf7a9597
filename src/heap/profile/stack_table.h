// Stores each stack once. A stored stack neither moves nor changes, so it may be read without a lock.
#pragma once

#include "heap/profile/stack.h"
#include "heap/profile/table.h"

namespace numalloc::profile {

// A Stack that has room for its own frames only.
struct KeptStack {
    std::uint64_t hash;
    std::uint32_t depth;
    Address frame[];
};

// Not thread-safe.
class StackTable {
public:
    // Returns nullptr without memory.
    const KeptStack* keep(const Stack& stack);
    std::size_t size() const { return table_.size(); }

private:
    struct Key {
        std::uint64_t hash;
        const Address* frame;
        std::uint32_t depth;
        bool operator==(const Key& other) const;
    };
    struct Entry {
        const KeptStack* stack;
        Key key() const { return {stack->hash, stack->frame, stack->depth}; }
        bool used() const { return stack != nullptr; }
        static std::uint64_t hash(const Key& key) { return key.hash; }
    };
    KeptStack* make(const Key& key);

    Table<Entry> table_;
    char* rest_ = nullptr;  // the unused part of the newest pages
    Bytes rest_bytes_ = 0;
};

}  // namespace numalloc::profile

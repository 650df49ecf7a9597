// Every stack once. What is in the table stays where it is, and does not change: it may be read without a lock.
#pragma once

#include "heap/profile/stack.h"
#include "heap/profile/table.h"

namespace numalloc::profile {

// As Stack, but no longer than it is.
struct KeptStack {
    std::uint64_t hash;
    std::uint32_t depth;
    Address frame[];
};

// Not thread-safe.
class StackTable {
public:
    // nullptr with no memory.
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
    char* rest_ = nullptr;  // of the pages that new stacks come to lie in
    Bytes rest_bytes_ = 0;
};

}  // namespace numalloc::profile

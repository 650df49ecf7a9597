// What players hold and hand to each other.
#pragma once

#include <atomic>
#include <mutex>

#include "api/queries.h"
#include "model/operations.h"

namespace fuzz {

// A heap of a player's; `objects` of it are in use, by whomever.
struct Heap {
    numalloc_heap* heap = nullptr;
    bool limited = false;
    std::atomic<int> objects{0};
};

struct Held : model::Block {
    Heap* heap = nullptr;
};

// What players share. Exact: one plays at a time, and the ranges of all blocks can be compared.
struct Table {
    explicit Table(bool exact_) : exact(exact_) {}

    struct Mailbox {
        std::mutex lock;
        Held block;
    };
    static constexpr std::size_t mailbox_count = 64;

    const bool exact;
    Mailbox mailboxes[mailbox_count];
    std::atomic<std::uint64_t> next_number{1};
    std::atomic<std::uint64_t> crossed{0};
};

}  // namespace fuzz

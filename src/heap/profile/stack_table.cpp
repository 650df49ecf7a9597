#include "heap/profile/stack_table.h"

#include <cstring>

#include "heap/profile/sampling.h"

namespace numalloc::profile {

namespace {

constexpr Bytes bytes_at_a_time = 256 * KiB;
static_assert(sizeof(KeptStack) + sizeof(Stack) <= bytes_at_a_time);

std::uint64_t hash_of(const Stack& stack) {
    std::uint64_t hash = stack.depth;
    for (std::uint32_t i = 0; i < stack.depth; ++i) hash = Random::mixed(hash + stack.frame[i] + Random::step);
    return hash;
}

}  // namespace

bool StackTable::Key::operator==(const Key& other) const {
    return hash == other.hash && depth == other.depth && std::memcmp(frame, other.frame, depth * sizeof *frame) == 0;
}

KeptStack* StackTable::make(const Key& key) {
    const Bytes bytes = sizeof(KeptStack) + key.depth * sizeof(Address);
    if (bytes > rest_bytes_) {
        auto* const pages = static_cast<char*>(os::map(bytes_at_a_time));
        if (pages == nullptr) return nullptr;
        rest_ = pages;
        rest_bytes_ = bytes_at_a_time;
    }
    auto* const kept = reinterpret_cast<KeptStack*>(rest_);
    rest_ += bytes;
    rest_bytes_ -= bytes;
    kept->hash = key.hash;
    kept->depth = key.depth;
    std::memcpy(kept->frame, key.frame, key.depth * sizeof(Address));
    return kept;
}

const KeptStack* StackTable::keep(const Stack& stack) {
    const Key key{hash_of(stack), stack.frame, stack.depth};
    if (const Entry* const found = table_.find(key)) return found->stack;
    // The stack comes first: an entry must be filled in at once.
    const KeptStack* const kept = make(key);
    if (kept == nullptr) return nullptr;
    Entry* const entry = table_.find_or_add(key);
    if (entry == nullptr) return nullptr;
    entry->stack = kept;
    return kept;
}

}  // namespace numalloc::profile

// A hash table on pages of its own: the profile must not allocate from the heap that it watches.
//
// Open addressing, linear probing. A table that is half full doubles. Entry has: Key key() const, bool used() const,
// and static std::uint64_t hash(Key). An entry of zeros is unused.
#pragma once

#include "base/bits.h"
#include "os/memory.h"

namespace numalloc::profile {

template <class Entry>
class Table {
public:
    Table() = default;
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    // Returns nullptr if there is no such entry.
    template <class Key>
    Entry* find(const Key& key) const {
        if (capacity_ == 0) return nullptr;
        Entry& entry = slots_[place_of(key)];
        return entry.used() ? &entry : nullptr;
    }

    // Returns the entry of the key, or an unused one that the caller must fill in at once. nullptr without memory.
    template <class Key>
    Entry* find_or_add(const Key& key) {
        if (Entry* const found = find(key)) return found;
        if (2 * (size_ + 1) > capacity_ && !grow()) return nullptr;
        ++size_;
        return &slots_[place_of(key)];
    }

    // Returns the first entry from `place` on that fits, and sets `place` to its own: remove() may move one there from
    // behind it. nullptr if none fits.
    template <class Fits>
    Entry* find_from(std::size_t& place, Fits fits) const {
        for (; place < capacity_; ++place)
            if (slots_[place].used() && fits(slots_[place])) return &slots_[place];
        return nullptr;
    }

    // Entries behind it that would become unreachable move up.
    void remove(Entry* entry) {
        std::size_t hole = static_cast<std::size_t>(entry - slots_);
        for (std::size_t i = next(hole); slots_[i].used(); i = next(i)) {
            const std::size_t wanted = home_of(slots_[i].key());
            if (((i - wanted) & (capacity_ - 1)) < ((i - hole) & (capacity_ - 1))) continue;
            slots_[hole] = slots_[i];
            hole = i;
        }
        slots_[hole] = Entry{};
        --size_;
    }

    template <class Visit>
    void for_each(Visit visit) const {
        for (std::size_t i = 0; i < capacity_; ++i)
            if (slots_[i].used()) visit(slots_[i]);
    }

    std::size_t size() const { return size_; }

    // Unmaps the pages. The table is then empty.
    void release() {
        if (capacity_ > 0) os::unmap(slots_, bytes_for(capacity_));
        slots_ = nullptr;
        capacity_ = size_ = 0;
    }

private:
    static Bytes bytes_for(std::size_t capacity) { return align_up(capacity * sizeof(Entry), os::page_size()); }
    std::size_t next(std::size_t i) const { return (i + 1) & (capacity_ - 1); }
    template <class Key>
    std::size_t home_of(const Key& key) const {
        return Entry::hash(key) & (capacity_ - 1);
    }
    template <class Key>
    std::size_t place_of(const Key& key) const {
        std::size_t i = home_of(key);
        while (slots_[i].used() && !(slots_[i].key() == key)) i = next(i);
        return i;
    }

    bool grow() {
        constexpr std::size_t first_capacity = 256;
        const std::size_t larger = capacity_ == 0 ? first_capacity : 2 * capacity_;
        auto* const slots = static_cast<Entry*>(os::map(bytes_for(larger)));
        if (slots == nullptr) return false;
        Entry* const old = slots_;
        const std::size_t old_capacity = capacity_;
        slots_ = slots;
        capacity_ = larger;
        for (std::size_t i = 0; i < old_capacity; ++i)
            if (old[i].used()) slots_[place_of(old[i].key())] = old[i];
        if (old != nullptr) os::unmap(old, bytes_for(old_capacity));
        return true;
    }

    Entry* slots_ = nullptr;
    std::size_t capacity_ = 0;  // a power of two, or 0
    std::size_t size_ = 0;
};

}  // namespace numalloc::profile

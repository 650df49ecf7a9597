// SPDX-License-Identifier: GPL-2.0-or-later
// Which object of the allocator's an address is in: the newest that was given out there. A freed one stays until its
// memory is given out again, unless it was large, which allocators give back to the system.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

namespace scope {

struct Object {
    uint64_t start = 0, size = 0;  // as it was asked for; size 0: there is none
    uint32_t thread = 0;           // that asked
    bool freed = false;

    bool holds(uint64_t address) const { return address - start < size; }
};

// Small objects are kept by page, in at most MOST_PAGES of them (about 4 KiB of table for each): the page whose first
// object is the oldest is forgotten then. Large ones are few.
class Objects {
public:
    static constexpr size_t MOST_PAGES = 1 << 16;

    void add(uint64_t start, uint64_t size, uint32_t thread) {
        if (!start) return;
        size = std::max<uint64_t>(size, 1);
        remove(start, start + size);
        if (size > LARGE) large_[start] = {start, size, thread, false};
        else page(start >> PAGE_BITS).put(start, static_cast<uint16_t>(size), thread);
    }

    void free(uint64_t start) {
        if (large_.erase(start)) return;
        if (Page* const found = find_page(start >> PAGE_BITS); found && found->has(start))
            found->entry(start).freed = true;
    }

    Object at(uint64_t address) {
        const Object small = small_before(address);
        if (small.holds(address)) return small;
        if (const auto next = large_.upper_bound(address); next != large_.begin())
            if (const Object& before = std::prev(next)->second; before.holds(address)) return before;
        return {};
    }

    bool holds(uint64_t address) { return at(address).size != 0; }

    void clear() {
        pages_.clear();
        order_.clear();
        large_.clear();
        latest_ = nullptr;
    }

    size_t pages() const { return pages_.size(); }

private:
    static constexpr unsigned PAGE_BITS = 12, GRANULE_BITS = 3;  // an object begins at a multiple of eight bytes
    static constexpr unsigned GRANULES = 1 << (PAGE_BITS - GRANULE_BITS);
    static constexpr uint64_t LARGE = 1 << PAGE_BITS;

    struct Page {
        struct Entry {
            uint32_t thread;
            uint16_t size;
            bool freed;
        };
        uint64_t number;
        uint64_t begins[GRANULES / 64]{};  // a bit for each granule in which an object begins
        Entry entries[GRANULES];

        static unsigned granule(uint64_t address) { return address >> GRANULE_BITS & (GRANULES - 1); }
        bool has(uint64_t address) const { return begins[granule(address) / 64] >> granule(address) % 64 & 1; }
        Entry& entry(uint64_t address) { return entries[granule(address)]; }
        void put(uint64_t start, uint16_t size, uint32_t thread) {
            begins[granule(start) / 64] |= uint64_t{1} << granule(start) % 64;
            entry(start) = {thread, size, false};
        }
        void remove(unsigned first, unsigned end) {
            for (unsigned granule = first; granule < end; ++granule)
                begins[granule / 64] &= ~(uint64_t{1} << granule % 64);
        }
        // The last that begins in a granule up to this one.
        Object last(unsigned granule) const {
            unsigned word = granule / 64;
            uint64_t bits = begins[word] & ~uint64_t{0} >> (63 - granule % 64);
            while (!bits && word) bits = begins[--word];
            if (!bits) return {};
            const unsigned found = word * 64 + 63 - static_cast<unsigned>(std::countl_zero(bits));
            const Entry& entry = entries[found];
            return {number << PAGE_BITS | found << GRANULE_BITS, entry.size, entry.thread, entry.freed};
        }
    };

    Page* find_page(uint64_t number) {
        if (latest_ && latest_->number == number) return latest_;
        const auto found = pages_.find(number);
        return found == pages_.end() ? nullptr : latest_ = found->second.get();
    }

    Page& page(uint64_t number) {
        if (Page* const found = find_page(number)) return *found;
        if (pages_.size() == MOST_PAGES) {
            pages_.erase(order_.front());
            order_.pop_front();
        }
        order_.push_back(number);
        auto& made = pages_[number] = std::make_unique<Page>();
        made->number = number;
        return *(latest_ = made.get());
    }

    // None is longer than a page.
    Object small_before(uint64_t address) {
        const uint64_t number = address >> PAGE_BITS;
        if (const Page* const here = find_page(number))
            if (const Object found = here->last(Page::granule(address)); found.size) return found;
        const Page* const before = find_page(number - 1);
        return before ? before->last(GRANULES - 1) : Object{};
    }

    // Everything that lies in this memory or reaches into it.
    void remove(uint64_t start, uint64_t end) {
        if (const Object before = small_before(start); before.holds(start))
            find_page(before.start >> PAGE_BITS)->remove(Page::granule(before.start), Page::granule(before.start) + 1);
        for (uint64_t at = start; at < end; at = ((at >> PAGE_BITS) + 1) << PAGE_BITS) {
            const uint64_t until = std::min(end, ((at >> PAGE_BITS) + 1) << PAGE_BITS);
            if (Page* const here = find_page(at >> PAGE_BITS))
                here->remove(Page::granule(at), Page::granule(until - 1) + 1);
        }
        if (large_.empty()) return;
        auto first = large_.upper_bound(start);
        if (first != large_.begin() && std::prev(first)->second.holds(start)) --first;
        while (first != large_.end() && first->first < end) first = large_.erase(first);
    }

    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    std::deque<uint64_t> order_;  // in which they were made
    std::map<uint64_t, Object> large_;
    Page* latest_ = nullptr;
};

}  // namespace scope

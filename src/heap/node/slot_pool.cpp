#include "heap/node/slot_pool.h"

#include <cstring>

namespace numalloc {

void SlotPool::count(std::uint32_t taken) {
    taken_.store(taken, std::memory_order_relaxed);
    const unsigned crowding =
        taken > policy::slots::uncrowded ? log2_floor((taken - 1) / policy::slots::uncrowded) + 1 : 0;
    crowding_.store(static_cast<std::uint8_t>(crowding), std::memory_order_relaxed);
}

void SlotPool::leave_behind(std::uint32_t kept) {
    os::Guard guard(lock_);
    count(kept);
    walkers_.store(0, std::memory_order_relaxed);  // threads of the parent
    next_to_ask_ = 0;
    ask_below_ = made();
}

// Returns made() or more if no slot is free.
std::uint32_t SlotPool::lowest_free() const {
    const std::uint32_t made = this->made();
    for (std::uint32_t word = 0; word * 64 < made; ++word)
        if (free_[word] != 0) return word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(free_[word]));
    return made;
}

void* SlotPool::take(Region& region, bool (*left_behind)(const void* slot)) {
    os::Guard guard(lock_);
    if (const std::uint32_t slot = lowest_free(); slot < made()) {
        free_[slot / 64] &= ~bit(slot);
        count(taken() + 1);
        return at(region, slot);
    }
    while (next_to_ask_ < ask_below_) {
        void* const slot = at(region, next_to_ask_++);
        if (!left_behind(slot)) continue;
        count(taken() + 1);
        return slot;
    }
    if (made() == most || !region.grow_thread_heaps((Bytes{made()} + 1) * slot_bytes_)) return nullptr;
    count(taken() + 1);
    return at(region, made());
}

void SlotPool::show(const Region& region, const void* slot) {
    os::Guard guard(lock_);
    if (slot == at(region, made())) made_.store(made() + 1, std::memory_order_release);
}

void SlotPool::give(const Region& region, void* slot, std::atomic<bool>& in_use) {
    os::Guard guard(lock_);
    in_use.store(false, std::memory_order_release);
    const std::uint32_t number = number_of(region, slot);
    free_[number / 64] |= bit(number);
    count(taken() - 1);
}

// Ending threads need the lock, so the system call runs without it. That is safe: no thread takes a slot during it.
void SlotPool::give_back_unused(const Region& region) {
    std::uint32_t end;
    std::uint32_t kept;
    {
        os::Guard guard(lock_);
        end = kept = made();
        while (kept > 0 && is_free(kept - 1)) --kept;
        if (end - kept < policy::slots::most_unused) return;
        kept += policy::slots::kept_unused;
        made_.store(kept, std::memory_order_seq_cst);
        if (walkers_.load(std::memory_order_seq_cst) != 0) {
            made_.store(end, std::memory_order_release);
            return;
        }
        for (std::uint32_t i = kept; i < end; ++i) free_[i / 64] &= ~bit(i);
    }
    // take() hands these slots out as new ones, which read as zero.
    char* const from = static_cast<char*>(at(region, kept));
    char* const to = static_cast<char*>(at(region, end));
    char* const first_page = reinterpret_cast<char*>(align_up(address_of(from), os::page_size()));
    char* const end_of_pages = reinterpret_cast<char*>(align_down(address_of(to), os::page_size()));
    const bool gone = os::discard(first_page, static_cast<Bytes>(end_of_pages - first_page));
    std::memset(from, 0, static_cast<Bytes>((gone ? first_page : to) - from));
    if (gone) std::memset(end_of_pages, 0, static_cast<Bytes>(to - end_of_pages));
}

}  // namespace numalloc

#include "placement/thread_record.h"

#include <cstring>
#include <new>

#include "base/bits.h"
#include "os/memory.h"

namespace numalloc::placement {

namespace {

// Room for hundreds of threads. Pages that no record uses are never touched.
constexpr Bytes slab_bytes = 64 * KiB;
constexpr Bytes record_alignment = 64;

}  // namespace

bool Records::start(unsigned words) {
    words_ = words;
    tables_ = os::map(tables_bytes);
    if (tables_ == nullptr) return false;
    of_tid_.start(tables_);
    of_handle_.start(static_cast<char*>(tables_) + tables_bytes / 3);
    of_owner_.start(static_cast<char*>(tables_) + 2 * (tables_bytes / 3));
    return true;
}

bool Records::next_slab() {
    Slab* slab = unused_;
    if (slab != nullptr) {
        unused_ = slab->older;
    } else {
        slab = static_cast<Slab*>(os::map(slab_bytes));
        if (slab == nullptr) return false;
        slab->older = slabs_.load(std::memory_order_relaxed);
        slabs_.store(slab, std::memory_order_release);
    }
    rest_ = reinterpret_cast<char*>(slab) + record_alignment;
    rest_bytes_ = slab_bytes - record_alignment;
    return true;
}

ThreadRecord* Records::fresh() {
    const Bytes record_bytes = align_up(sizeof(ThreadRecord) + 2 * words_ * sizeof(std::uint64_t), record_alignment);
    char* memory;
    do {
        if (rest_bytes_ < record_bytes && !next_slab()) return nullptr;
        memory = rest_;
        rest_ += record_bytes;
        rest_bytes_ -= record_bytes;
    } while (memory == reinterpret_cast<char*>(kept_));
    return new (memory) ThreadRecord;
}

void Records::keep_only(ThreadRecord* kept) {
    if (!os::discard_unseen(tables_, tables_bytes)) std::memset(tables_, 0, tables_bytes);
    unused_ = slabs_.load(std::memory_order_relaxed);
    rest_bytes_ = 0;
    free_ = nullptr;
    live_ = kept_ = kept;
    if (kept == nullptr) return;
    kept->next = kept->previous = nullptr;
    kept->tid = 0;
    kept->handle = 0;
    kept->owner = -1;
}

ThreadRecord* Records::take() {
    ThreadRecord* record = free_;
    if (record != nullptr) free_ = record->next;
    else if (record = fresh(); record == nullptr) return nullptr;

    const std::uint64_t generation = record->generation;
    new (record) ThreadRecord;
    record->generation = generation + 1;
    for (unsigned w = 0; w < 2 * words_; ++w) record->user_mask()[w] = 0;

    record->next = live_;
    if (live_ != nullptr) live_->previous = record;
    live_ = record;
    return record;
}

void Records::give(ThreadRecord* record) {
    if (record->previous != nullptr) record->previous->next = record->next;
    else live_ = record->next;
    if (record->next != nullptr) record->next->previous = record->previous;

    of_tid_.remove(record);
    of_handle_.remove(record);
    of_owner_.remove(record);
    ++record->generation;
    record->next = free_;
    free_ = record;
}

}  // namespace numalloc::placement

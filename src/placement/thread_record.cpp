#include "placement/thread_record.h"

#include <new>

#include "base/bits.h"
#include "os/memory.h"

namespace numalloc::placement {

namespace {

// Room for hundreds of threads. Pages that no record uses are never touched.
constexpr Bytes slab_bytes = 64 * KiB;

}  // namespace

bool Records::start(unsigned words) {
    words_ = words;
    constexpr Bytes each = decltype(of_tid_)::table_bytes;
    auto* const tables = static_cast<char*>(os::map(3 * each));
    if (tables == nullptr) return false;
    of_tid_.start(tables);
    of_handle_.start(tables + each);
    of_owner_.start(tables + 2 * each);
    return true;
}

ThreadRecord* Records::fresh() {
    const Bytes record_bytes = align_up(sizeof(ThreadRecord) + words_ * sizeof(std::uint64_t), 64);
    if (slab_left_ < record_bytes) {
        slab_ = static_cast<char*>(os::map(slab_bytes));
        slab_left_ = slab_ == nullptr ? 0 : slab_bytes;
        if (slab_ == nullptr) return nullptr;
    }
    auto* record = new (slab_) ThreadRecord;
    slab_ += record_bytes;
    slab_left_ -= record_bytes;
    return record;
}

ThreadRecord* Records::take() {
    ThreadRecord* record = free_;
    if (record != nullptr) free_ = record->next;
    else if (record = fresh(); record == nullptr) return nullptr;

    const std::uint64_t generation = record->generation;
    new (record) ThreadRecord;
    record->generation = generation + 1;
    for (unsigned w = 0; w < words_; ++w) record->user_mask()[w] = 0;

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

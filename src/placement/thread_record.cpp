#include "placement/thread_record.h"

#include <new>

#include "base/bits.h"
#include "os/memory.h"

namespace numalloc::placement {

namespace {

// Room for hundreds of threads. Pages that no record uses are never touched.
constexpr Bytes slab_bytes = 64 * KiB;

}  // namespace

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

    record->tid = 0;
    ++record->generation;
    record->next = free_;
    free_ = record;
}

ThreadRecord* Records::find(int tid) const {
    for (ThreadRecord* r = live_; r != nullptr; r = r->next)
        if (r->tid == tid) return r;
    return nullptr;
}

ThreadRecord* Records::find(pthread_t handle) const {
    for (ThreadRecord* r = live_; r != nullptr; r = r->next)
        if (r->handle == handle) return r;
    return nullptr;
}

}  // namespace numalloc::placement

#include "heap/profile/thread_profile.h"

#include <new>

#include "heap/profile/profile.h"
#include "heap/profile/recorded.h"

namespace numalloc::profile {

namespace {

constexpr Bytes bytes_at_a_time = 64 * KiB;

ThreadProfile* take_free() {
    os::Guard guard(recorded->threads_lock);
    ThreadProfile*& list = recorded->free_threads;
    if (list == nullptr) {
        auto* const pages = static_cast<char*>(os::map(bytes_at_a_time));
        if (pages == nullptr) return nullptr;
        for (Bytes at = 0; at + sizeof(ThreadProfile) <= bytes_at_a_time; at += sizeof(ThreadProfile)) {
            auto* const thread = new (pages + at) ThreadProfile;
            thread->next_free = list;
            list = thread;
        }
    }
    ThreadProfile* const thread = list;
    list = thread->next_free;
    return thread;
}

}  // namespace

ThreadProfile* begin_thread(ThreadProfile* old) {
    if (!on()) return nullptr;
    ThreadProfile* const thread = old != nullptr ? old : take_free();
    if (thread == nullptr) {
        recorded->store.count_lost();
        return nullptr;
    }
    thread->bound = 0;
    thread->trail.length = 0;  // of a thread that has ended
    thread->random = Random{Random::mixed(recorded->random.fetch_add(Random::step, std::memory_order_relaxed))};
    for (unsigned c = 1; c < class_count; ++c) thread->left[c] = draw(*thread, ClassId{c});
    return thread;
}

void end_thread(ThreadProfile* thread) {
    if (thread == nullptr) return;
    os::Guard guard(recorded->threads_lock);
    thread->next_free = recorded->free_threads;
    recorded->free_threads = thread;
}

}  // namespace numalloc::profile

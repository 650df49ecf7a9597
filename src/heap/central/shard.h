// The data that the threads of one shard of a class share: its bags, their never-used rest, and the ring of lists.
// Threads of different shards meet only in the page heap and in the class's common data: a ring of large objects, and a
// bit for each shard that has bags to spare.
//
//   shard \ class    1       2       3   ...      a page has sixteen classes of one shard: a process
//     0            [ . ]   [ . ]   [ . ]          of few threads touches few pages
//     1            [ . ]   [ . ]   [ . ]          mapped when a thread uses the shard
//
// Zeroed pages are valid: nothing is constructed, and an unused shard costs no memory.
#pragma once

#include "heap/central/ring.h"
#include "os/lock.h"

namespace numalloc {

constexpr unsigned shard_words = policy::shards::most / 64;

// The state that drain() checks. resting: nothing has come or gone since the last drain; drained: nothing is left to
// drain. Read without a lock, so that a drain does not touch unused shards.
class Activity {
public:
    enum State : std::uint8_t { drained, used, resting };
    State state() const { return state_.load(std::memory_order_relaxed); }
    void note_use() {
        if (state() != used) state_.store(used, std::memory_order_relaxed);
    }
    // Call it once the objects are where a drain looks for them, even if the state is `used` already. A drain that
    // begins later finds the objects. One that began earlier may miss them, but this store follows its store, so the
    // next drain finds them.
    void note_arrival() { state_.store(used, std::memory_order_release); }
    void rest() { state_.store(resting, std::memory_order_relaxed); }
    // Call it before the drain looks for objects.
    void begin_drain() { state_.exchange(drained, std::memory_order_acquire); }

private:
    std::atomic<State> state_{drained};
};

struct alignas(64) Shard {
    // Guarded by the lock, in its cache line: no other thread reads it.
    os::Lock<os::LockRank::size_class> lock;
    BagIndex partial NUMALLOC_GUARDED_BY(lock);  // bags with freed objects (full ones first) or objects away
    BagIndex last_partial NUMALLOC_GUARDED_BY(lock);
    BagIndex carving NUMALLOC_GUARDED_BY(lock);               // the bag whose never-used rest is handed out
    std::uint32_t looked_at NUMALLOC_GUARDED_BY(lock);        // milliseconds: when malloc_trim() last looked
    std::uint32_t came_here NUMALLOC_GUARDED_BY(lock);        // objects carved, or no longer away, since then
    std::uint64_t looked_at_taken NUMALLOC_GUARDED_BY(lock);  // `taken` and `fetched` at that time
    std::uint64_t looked_at_fetched NUMALLOC_GUARDED_BY(lock);
    std::uint32_t away NUMALLOC_GUARDED_BY(lock);  // objects away, in all bags (heap/space/bag.h)
    // Objects in bags' lists that nobody has needed: heap/central/idle_pages.cpp.
    struct Idle {
        std::uint32_t since;    // milliseconds: when the period began
        std::uint32_t fetched;  // the low bits of `fetched` at the last call
        std::uint32_t listed;   // objects listed then, less those that have left since other than by a fetch
        std::uint32_t least;    // of these, listed in all of the period
        // `over`: as many go as are left of `least`. A thread is at work on that, or will go on with it.
        enum Period : std::uint8_t { runs, over, at_work } period;
        bool came_back;        // objects that were away, since the last period
        bool regretted;        // they had, before the last look
        std::uint8_t doubled;  // the period is 2^doubled times purge_delay
        void leave(std::uint32_t objects) {
            listed -= min_of(listed, objects);
            least -= min_of(least, objects);
        }
    } idle NUMALLOC_GUARDED_BY(lock);

    // Accessed without the lock.
    alignas(64) Ring ring;
    Activity activity;
    std::atomic<std::uint32_t> lists_put{0};    // one in policy::rings::lists_per_walk is walked
    std::atomic<std::uint32_t> bags{0};         // written under the lock
    std::atomic<std::uint64_t> taken{0};        // objects outside of the shard's bags
    std::atomic<std::uint64_t> flush_below{0};  // sparse: empty the ring when `taken` falls to this
    std::atomic<std::uint64_t> fetched{0};      // objects that threads of the shard have taken since the start
    std::atomic<std::uint64_t> came_home{0};    // objects that other nodes' threads have sent since the start
};
static_assert(sizeof(Shard) == 256);

// The data that all shards of a class share.
struct alignas(64) Common {
    Ring ring;  // of large objects
    Activity activity;
    std::atomic<std::uint32_t> bags{0};                  // of all shards
    std::atomic<std::uint64_t> spare[shard_words] = {};  // shards that have bags to spare; see ClassHeap::adopt()
};

inline bool test_bit(const std::atomic<std::uint64_t>* words, unsigned i) {
    return (words[i / 64].load(std::memory_order_relaxed) >> (i % 64) & 1) != 0;
}
// Writes the word only if the bit changes.
inline void set_bit(std::atomic<std::uint64_t>* words, unsigned i, bool on) {
    if (test_bit(words, i) == on) return;
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    if (on) words[i / 64].fetch_or(bit, std::memory_order_release);
    else words[i / 64].fetch_and(~bit, std::memory_order_release);
}

// The shards of all classes of one node. At first only the memory of shard 0 has to be mapped.
class Shards {
public:
    // Call it before a thread uses the shard, once its memory is mapped. One thread at a time.
    void open(unsigned shard) {
        if (is_open(shard)) return;
        set_bit(opened_, shard, true);
        others_.fetch_add(1, std::memory_order_relaxed);
        last_.store(max_of(end() - 1, shard), std::memory_order_relaxed);
    }
    // Shard 0 is always open: threads without a heap use it.
    bool is_open(unsigned shard) const { return shard == 0 || test_bit(opened_, shard); }
    unsigned count() const { return 1 + others_.load(std::memory_order_relaxed); }

    // One past the last open shard.
    unsigned end() const { return 1 + last_.load(std::memory_order_relaxed); }

    Shard& at(unsigned shard, ClassId c) { return of_[shard][c.value]; }
    Common& common(ClassId c) { return common_[c.value]; }
    // The end of the shard's memory.
    Address end_of(unsigned shard) { return address_of(&of_[shard] + 1); }

private:
    std::atomic<std::uint64_t> opened_[shard_words] = {};
    std::atomic<std::uint32_t> others_{0};
    std::atomic<std::uint32_t> last_{0};
    Common common_[class_count];
    Shard of_[policy::shards::most][class_count];
};

}  // namespace numalloc

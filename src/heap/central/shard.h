// What the threads that have a shard of a class's bags use together: the bags, what is left of them,
// and the ring of lists that they hand over. Threads of different shards meet in the page heap, and in what a class has
// in common: a ring of large objects, and the knowledge of who has bags to spare.
//
//   shard \ class    1       2       3   ...      a page has sixteen classes of one shard: a process
//     0            [ . ]   [ . ]   [ . ]          of few threads touches few pages
//     1            [ . ]   [ . ]   [ . ]          mapped when a thread has it
//
// Zero pages are valid: nothing is constructed, and what nobody uses costs no memory.
#pragma once

#include "heap/central/ring.h"
#include "os/lock.h"

namespace numalloc {

constexpr unsigned shard_words = policy::most_shards / 64;

// For drain(): resting if nothing came or went since it last came by, drained if nothing is left to
// be drained. Read without a lock, so that it does not touch what nobody uses.
class Activity {
public:
    enum State : std::uint8_t { drained, used, resting };
    State state() const { return state_.load(std::memory_order_relaxed); }
    void note_use() {
        if (state() != used) state_.store(used, std::memory_order_relaxed);
    }
    // Once the objects are where a drain looks for them, and even where it says `used` already. A drain that begins
    // later finds the objects; one that began earlier may miss them, but then this is the later word, and the next
    // finds them.
    void note_arrival() { state_.store(used, std::memory_order_release); }
    void rest() { state_.store(resting, std::memory_order_relaxed); }
    // Before the drain looks for anything.
    void begin_drain() { state_.exchange(drained, std::memory_order_acquire); }

private:
    std::atomic<State> state_{drained};
};

struct alignas(64) Shard {
    // Under the lock, in its cache line: nobody else looks at it.
    os::Lock<os::LockRank::size_class> lock;
    BagIndex partial
        NUMALLOC_GUARDED_BY(lock);  // bags with freed objects, mostly the fullest first, or with objects away
    BagIndex last_partial NUMALLOC_GUARDED_BY(lock);
    BagIndex carving NUMALLOC_GUARDED_BY(lock);               // the bag whose never-used rest is handed out
    std::uint32_t looked_at NUMALLOC_GUARDED_BY(lock);        // when free pages were last returned: milliseconds
    std::uint32_t came_here NUMALLOC_GUARDED_BY(lock);        // objects carved, or no longer away, since then
    std::uint64_t looked_at_taken NUMALLOC_GUARDED_BY(lock);  // `taken` and `fetched` at that time
    std::uint64_t looked_at_fetched NUMALLOC_GUARDED_BY(lock);

    // Without the lock.
    alignas(64) Ring ring;
    Activity activity;
    std::atomic<std::uint32_t> lists_put{0};    // one in policy::lists_per_walk is walked
    std::atomic<std::uint32_t> bags{0};         // written under the lock
    std::atomic<std::uint64_t> taken{0};        // objects outside of the shard's bags
    std::atomic<std::uint64_t> flush_below{0};  // sparse: empty the ring when `taken` falls to this
    std::atomic<std::uint64_t> fetched{0};      // objects that threads of the shard have taken since the start
    std::atomic<std::uint64_t> came_home{0};    // objects that threads of other nodes have put since the start
};
static_assert(sizeof(Shard) == 256);

// What all shards of a class have together.
struct alignas(64) Common {
    Ring ring;  // of large objects
    Activity activity;
    std::atomic<std::uint32_t> bags{0};                  // of all shards
    std::atomic<std::uint64_t> spare[shard_words] = {};  // shards that have bags to spare; see ClassHeap::adopt()
};

inline bool test_bit(const std::atomic<std::uint64_t>* words, unsigned i) {
    return (words[i / 64].load(std::memory_order_relaxed) >> (i % 64) & 1) != 0;
}
// Writes only what changes.
inline void set_bit(std::atomic<std::uint64_t>* words, unsigned i, bool on) {
    if (test_bit(words, i) == on) return;
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    if (on) words[i / 64].fetch_or(bit, std::memory_order_release);
    else words[i / 64].fetch_and(~bit, std::memory_order_release);
}

// Of all classes of one node. Only the first of the shards' memory needs to be there when it begins.
class Shards {
public:
    // Before a thread has it; its memory is there. One thread at a time.
    void open(unsigned shard) {
        if (is_open(shard)) return;
        set_bit(opened_, shard, true);
        others_.fetch_add(1, std::memory_order_relaxed);
        last_.store(max_of(end() - 1, shard), std::memory_order_relaxed);
    }
    // Threads without a heap have shard 0.
    bool is_open(unsigned shard) const { return shard == 0 || test_bit(opened_, shard); }
    unsigned count() const { return 1 + others_.load(std::memory_order_relaxed); }

    // Behind the last that is open.
    unsigned end() const { return 1 + last_.load(std::memory_order_relaxed); }

    Shard& at(unsigned shard, ClassId c) { return of_[shard][c.value]; }
    Common& common(ClassId c) { return common_[c.value]; }
    // Behind its memory.
    Address end_of(unsigned shard) { return address_of(&of_[shard] + 1); }

private:
    std::atomic<std::uint64_t> opened_[shard_words] = {};
    std::atomic<std::uint32_t> others_{0};
    std::atomic<std::uint32_t> last_{0};
    Common common_[class_count];
    Shard of_[policy::most_shards][class_count];
};

}  // namespace numalloc

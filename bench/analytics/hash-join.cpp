// The non-partitioned hash join W3 of the study of allocators and placement for data analytics on NUMA
// machines: all threads put the small table into one hash table, each bucket under a latch, and rows that a
// bucket has no room for into further ones; then all look up the large table's rows and write the pairs.
#include <sched.h>

#include <atomic>
#include <bit>
#include <new>

#include "analytics/data.h"
#include "support/object.h"
#include "support/threads.h"

namespace {

using analytics::Record;

struct Bucket {
    static constexpr unsigned room = 2;
    std::atomic_flag latch;
    unsigned count = 0;
    Bucket* next = nullptr;
    Record rows[room];
};

class HashTable {
public:
    explicit HashTable(std::uint64_t rows) : buckets_(std::bit_ceil(rows / Bucket::room + 1)) {}

    void add(const Record& row) {
        Bucket& first = bucket_of(row.key);
        while (first.latch.test_and_set(std::memory_order_acquire)) sched_yield();
        if (first.count == Bucket::room) {
            // The full rows move behind, so that the first bucket is always the one with room.
            auto* const more = new (bench::take(sizeof(Bucket))) Bucket;
            std::copy_n(first.rows, Bucket::room, more->rows);
            more->count = Bucket::room;
            more->next = first.next;
            first.next = more;
            first.count = 0;
        }
        first.rows[first.count++] = row;
        first.latch.clear(std::memory_order_release);
    }

    template <class Visit>
    void find(std::uint64_t key, Visit visit) {
        for (const Bucket* bucket = &bucket_of(key); bucket != nullptr; bucket = bucket->next) {
            for (unsigned i = 0; i < bucket->count; ++i) {
                if (bucket->rows[i].key == key) visit(bucket->rows[i]);
            }
        }
    }

    /// Frees the share of thread `index` of `count`.
    void release(unsigned index, unsigned count) {
        const std::uint64_t end = analytics::first_of(buckets_.size(), index + 1, count);
        for (std::uint64_t i = analytics::first_of(buckets_.size(), index, count); i < end; ++i) {
            for (Bucket *bucket = buckets_[i].next, *next; bucket != nullptr; bucket = next) {
                next = bucket->next;
                std::free(bucket);
            }
        }
    }

private:
    Bucket& bucket_of(std::uint64_t key) { return buckets_[bench::scatter(key) & (buckets_.size() - 1)]; }

    std::vector<Bucket> buckets_;
};

// A thread's pairs, in pieces that are allocated as they are needed.
class Output {
public:
    void add(std::uint64_t key, std::uint64_t payload, std::uint64_t value) {
        if (last_ == nullptr || last_->count == Piece::room) {
            auto* const piece = static_cast<Piece*>(bench::take(sizeof(Piece)));
            piece->before = last_;
            piece->count = 0;
            last_ = piece;
        }
        last_->pairs[last_->count++] = {key, payload, value};
    }
    /// Reads all of them, and frees them.
    analytics::Joined drain(bench::PageList& pages) {
        analytics::Joined joined;
        for (Piece *piece = last_, *before; piece != nullptr; piece = before) {
            for (unsigned i = 0; i < piece->count; ++i) {
                const Pair& pair = piece->pairs[i];
                joined.add(pair.key, pair.payload, pair.value);
            }
            before = piece->before;
            pages.add(piece, sizeof *piece);
        }
        pages.count();
        for (Piece* piece = last_; piece != nullptr; piece = last_) {
            last_ = piece->before;
            std::free(piece);
        }
        return joined;
    }

private:
    struct Pair {
        std::uint64_t key, payload, value;
    };
    struct Piece {
        static constexpr unsigned room = 1000;
        Piece* before;
        unsigned count;
        Pair pairs[room];
    };
    Piece* last_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& rows = command.option("rows", 1'000'000, analytics::paper_rows,
                                      "rows of the small table at scale 1; the large one has 16 times as many");
    command.parse();

    const std::vector<Record> small = analytics::make_rows(command.scaled(rows), command.seed());
    const std::vector<Record> large = analytics::make_probes(small.size(), command.seed());
    const unsigned threads = command.threads();
    std::vector<analytics::Joined> found(threads);
    bench::Barrier gate(threads);
    HashTable table(small.size());
    double begun = 0, built = 0;  // thread 0's
    const double seconds = bench::run_threads(threads, [&](unsigned index) {
        if (index == 0) begun = bench::now();
        const std::uint64_t rows_end = analytics::first_of(small.size(), index + 1, threads);
        for (std::uint64_t i = analytics::first_of(small.size(), index, threads); i < rows_end; ++i)
            table.add(small[i]);
        gate.wait();
        if (index == 0) built = bench::now();
        Output output;
        const std::uint64_t end = analytics::first_of(large.size(), index + 1, threads);
        for (std::uint64_t i = analytics::first_of(large.size(), index, threads); i < end; ++i) {
            const Record& probe = large[i];
            table.find(probe.key, [&](const Record& row) { output.add(row.key, row.value, probe.value); });
        }
        gate.wait();
        bench::PageList pages(command.pages());
        found[index] = output.drain(pages);
        table.release(index, threads);
    });
    analytics::check_join(large, found);
    command.figure("build_seconds", built - begun);
    return command.report({.operations = small.size() + large.size(), .seconds = seconds});
}

// GROUP BY over one of the data sets, as in the workloads W1 and W2 of the study of allocators and placement
// for data analytics on NUMA machines: threads share out the records and put them into groups.
//   --table partitioned: each thread has a table of its own for each thread; that one then merges all that are
//                        for it, and frees what the others allocated
//   --table concurrent:  one table for all, oneTBB's concurrent_hash_map on the allocator that is measured
//   --input threads:     before the clock runs each thread makes the records that it will put into groups; else
//                        main makes all of them, and what the other nodes' threads read is remote whatever the
//                        allocator does
// An aggregate has add(value), merge(other), which empties the other, result(), and frees in its destructor.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "analytics/data.h"
#include "analytics/table.h"
#include "support/threads.h"

#ifdef BENCH_TBB
#include <oneapi/tbb/concurrent_hash_map.h>
#endif

namespace analytics {

inline constexpr std::uint64_t no_group = ~std::uint64_t{0};

/// The result of each group by its key; no_group where there is none.
using Answer = std::vector<std::uint64_t>;

template <class Aggregate>
class Partitioned {
public:
    Partitioned(unsigned threads, bench::Pages& pages)
        : threads_(threads), pages_(pages), gate_(threads), tables_(std::size_t{threads} * threads) {}

    void work(unsigned index, std::span<const Record> records, Answer& answer) {
        for (const Record& record : records) {
            // Other bits than those that the table uses.
            const std::uint64_t owner = (bench::scatter(record.key) >> 40) % threads_;
            tables_[index * threads_ + owner].at(record.key).add(record.value);
        }
        gate_.wait();
        Table<Aggregate>& mine = tables_[index * threads_ + index];
        for (unsigned other = 0; other < threads_; ++other) {
            if (other == index) continue;
            Table<Aggregate>& table = tables_[other * threads_ + index];
            table.each([&](auto* node) {
                mine.at(node->key).merge(node->value);
                Table<Aggregate>::release(node);
            });
            table.forget();
        }
        bench::PageList pages(pages_);
        mine.each([&](auto* node) {
            pages.add(node, sizeof *node);
            answer[node->key] = node->value.result();
        });
        pages.count();
        mine.each([](auto* node) { Table<Aggregate>::release(node); });
        mine.forget();
    }

private:
    unsigned threads_;
    bench::Pages& pages_;
    bench::Barrier gate_;
    std::vector<Table<Aggregate>> tables_;  // [who filled it][whose it is]
};

#ifdef BENCH_TBB
template <class Aggregate>
class Concurrent {
public:
    Concurrent(unsigned threads, bench::Pages& pages) : threads_(threads), pages_(pages), gate_(threads) {}

    void work(unsigned index, std::span<const Record> records, Answer& answer) {
        for (const Record& record : records) {
            typename Map::accessor group;
            map_.insert(group, record.key);
            group->second.add(record.value);
        }
        gate_.wait();
        if (index == 0) {
            for (auto& entry : map_) entries_.push_back(&entry);
        }
        gate_.wait();
        bench::PageList pages(pages_);
        const std::uint64_t last = first_of(entries_.size(), index + 1, threads_);
        for (std::uint64_t i = first_of(entries_.size(), index, threads_); i < last; ++i) {
            pages.add(entries_[i], sizeof *entries_[i]);
            answer[entries_[i]->first] = entries_[i]->second.result();
        }
        pages.count();
        gate_.wait();
        if (index == 0) map_.clear();
    }

private:
    struct Hash {
        static std::size_t hash(std::uint64_t key) { return bench::scatter(key); }
        static bool equal(std::uint64_t one, std::uint64_t other) { return one == other; }
    };
    // Its standard allocator would be tbbmalloc where that is installed.
    using Allocator = std::allocator<std::pair<const std::uint64_t, Aggregate>>;
    using Map = oneapi::tbb::concurrent_hash_map<std::uint64_t, Aggregate, Hash, Allocator>;

    unsigned threads_;
    bench::Pages& pages_;
    bench::Barrier gate_;
    Map map_;
    std::vector<typename Map::value_type*> entries_;
};
#endif

/// The records, as main made them or each thread its share.
struct Input {
    std::vector<Record> mains;
    std::vector<std::vector<Record>> shares;  // of each thread; empty where main made all of them

    std::span<const Record> of(unsigned index, unsigned threads) const {
        if (!shares.empty()) return shares[index];
        const std::uint64_t first = first_of(mains.size(), index, threads);
        return std::span(mains).subspan(first, first_of(mains.size(), index + 1, threads) - first);
    }
    /// All of them, in main's hands.
    void gather() {
        for (const std::vector<Record>& share : shares) mains.insert(mains.end(), share.begin(), share.end());
    }
};

template <class Aggregate, template <class> class How, class Prepare>
double grouped(bench::Command& command, const Input& input, Prepare prepare, Answer& answer) {
    const unsigned threads = command.threads();
    How<Aggregate> how(threads, command.pages());
    return bench::run_threads(threads, prepare,
                              [&](unsigned index) { how.work(index, input.of(index, threads), answer); });
}

/// main() of both programs; `check` ends the program where the answer is wrong.
template <class Aggregate, class Check>
int group(bench::Command& command, Check check) {
    const auto& keys = command.choice("data", key_words, "how the keys are distributed");
    const auto& table =
        command.choice("table", "partitioned|concurrent", "a table for each thread, or oneTBB's for all");
    const auto& maker = command.choice("input", "main|threads", "who makes the records: main, or each thread its own");
    const auto& records = command.option("records", 16'000'000, paper_records, "records at scale 1");
    const auto& groups = command.option("groups", 160'000, paper_groups, "groups at scale 1");
    command.parse();
#ifndef BENCH_TBB
    if (table == 1) bench::fail("--table concurrent: built without oneTBB (Debian: libtbb-dev); accepted: partitioned");
#endif
    const std::uint64_t count = command.scaled(records), different = command.scaled(groups);
    const Keys keys_as = static_cast<Keys>(keys);
    Input input;
    if (maker == 0) input.mains = make_records(keys_as, count, different, command.seed());
    if (maker == 1) input.shares.resize(command.threads());
    const auto prepare = [&](unsigned index) {
        if (maker == 0) return;
        const std::uint64_t first = first_of(count, index, command.threads());
        const std::uint64_t end = first_of(count, index + 1, command.threads());
        input.shares[index] = make_part(keys_as, first, end, count, different, bench::Random(command.seed(), index));
    };
    Answer answer(different, no_group);
    double seconds = 0;
#ifdef BENCH_TBB
    if (table == 1) seconds = grouped<Aggregate, Concurrent>(command, input, prepare, answer);
#endif
    if (table == 0) seconds = grouped<Aggregate, Partitioned>(command, input, prepare, answer);
    input.gather();
    check(input.mains, answer);
    const auto absent = std::count(answer.begin(), answer.end(), no_group);
    command.figure("groups", static_cast<double>(answer.size()) - static_cast<double>(absent));
    return command.report({.operations = count, .seconds = seconds});
}

}  // namespace analytics

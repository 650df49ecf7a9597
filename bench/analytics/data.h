// The input of the programs of the study of allocators and placement for data analytics on NUMA machines
// (its section 4.2): records for the aggregations W1 and W2, tables for the joins W3 and W4. The main thread
// makes them, so first touch puts all of them on its node; records also each thread its own, if that is asked for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "support/command.h"
#include "support/random.h"

namespace analytics {

struct Record {
    std::uint64_t key;
    std::uint64_t value;
};

enum class Keys { moving_cluster, sequential, zipf, uniform };
inline constexpr const char* key_words = "moving-cluster|sequential|zipf|uniform";

// The study's text has these.
inline constexpr std::uint64_t paper_records = 100'000'000, paper_groups = 1'000'000;

/// The keys of a window, for moving-cluster. The study gives no number.
inline constexpr std::uint64_t window = 1024;

/// Draws 0 to count - 1 with a probability in proportion to 1 / sqrt(number + 1): Zipf's law with exponent 0.5.
/// Square roots and sums are the same on every machine, which powers are not.
class Zipf {
public:
    explicit Zipf(std::uint64_t count) : sums_(count) {
        double sum = 0;
        for (std::uint64_t i = 0; i < count; ++i) sums_[i] = sum += 1 / std::sqrt(static_cast<double>(i + 1));
    }
    std::uint64_t draw(bench::Random& random) const {
        const double wanted = static_cast<double>(random.next() >> 11) * 0x1p-53 * sums_.back();
        const auto place = std::upper_bound(sums_.begin(), sums_.end() - 1, wanted);
        return static_cast<std::uint64_t>(place - sums_.begin());
    }

private:
    std::vector<double> sums_;
};

/// The first of thread `index`'s records of `total`; that of index == count is the end.
inline std::uint64_t first_of(std::uint64_t total, unsigned index, unsigned count) {
    return total / count * index + std::min<std::uint64_t>(index, total % count);
}

/// Records `first` to `end` - 1 of `count` with keys below `groups`. The same random numbers give the same records;
/// not every key need occur.
inline std::vector<Record> make_part(Keys keys, std::uint64_t first, std::uint64_t end, std::uint64_t count,
                                     std::uint64_t groups, bench::Random random) {
    std::vector<Record> records(end - first);
    const std::uint64_t width = std::min(window, groups);
    const Zipf zipf(keys == Keys::zipf ? groups : 1);
    for (std::uint64_t i = first; i < end; ++i) {
        std::uint64_t key = 0;
        switch (keys) {
            // The window slides from the first key to the last once.
            case Keys::moving_cluster: key = (groups - width) * i / count + random.below(width); break;
            // As many segments as groups.
            case Keys::sequential: key = i * groups / count; break;
            case Keys::zipf: key = zipf.draw(random); break;
            case Keys::uniform: key = random.below(groups); break;
        }
        records[i - first] = {key, random.next() >> 32};
    }
    return records;
}

/// All `count` of them.
inline std::vector<Record> make_records(Keys keys, std::uint64_t count, std::uint64_t groups, std::uint64_t seed) {
    return make_part(keys, 0, count, count, groups, bench::Random(seed));
}

// And these: 16 million and 256 million tuples, 1 : 16.
inline constexpr std::uint64_t paper_rows = 16'000'000, probes_of_a_row = 16;

/// What the row with a key of the small table holds beside it.
inline std::uint64_t payload_of(std::uint64_t key) { return bench::scatter(key) >> 32; }

/// The small table: each key below `count` once, in random order.
inline std::vector<Record> make_rows(std::uint64_t count, std::uint64_t seed) {
    bench::Random random(seed);
    std::vector<Record> rows(count);
    for (std::uint64_t i = 0; i < count; ++i) rows[i] = {i, payload_of(i)};
    for (std::uint64_t i = count; i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
    return rows;
}

/// The large one: each row's key is that of a row of the small one.
inline std::vector<Record> make_probes(std::uint64_t rows, std::uint64_t seed) {
    return make_records(Keys::uniform, rows * probes_of_a_row, rows, seed + 1);
}

/// What a join has found: how many pairs, and a sum over them.
struct Joined {
    std::uint64_t pairs = 0;
    std::uint64_t sum = 0;
    void add(std::uint64_t key, std::uint64_t payload, std::uint64_t value) {
        ++pairs;
        sum += bench::scatter(key ^ value) + payload;
    }
};

/// Ends the program unless the threads together found what is computed here without a table.
inline void check_join(const std::vector<Record>& probes, const std::vector<Joined>& found) {
    Joined right, all;
    for (const Record& probe : probes) right.add(probe.key, payload_of(probe.key), probe.value);
    for (const Joined& one : found) all.pairs += one.pairs, all.sum += one.sum;
    using Shown = unsigned long long;
    if (all.pairs != right.pairs) {
        bench::fail("the join has %llu pairs, not %llu", static_cast<Shown>(all.pairs),
                    static_cast<Shown>(right.pairs));
    }
    if (all.sum != right.sum) bench::fail("the join's pairs are wrong");
}

}  // namespace analytics

// The index nested-loop join W4 of the study of allocators and placement for data analytics on NUMA machines, on
// the tables of W3: an index of the small table is built, and the large table's rows are looked up in it. The study
// has both times, each by itself (its figure 7): build_seconds and probe_seconds. Here the index has 256 parts by
// the key's range, each with a lock for those who insert, because the structures themselves know no threads.
#include <mutex>

#include "analytics/data.h"
#include "analytics/index/art.h"
#include "analytics/index/btree.h"
#include "analytics/index/skip_list.h"
#include "analytics/index/trie.h"
#include "support/threads.h"

namespace {

using analytics::Record;

// Each thread the pages of its share of the parts' nodes, all of which all threads use.
template <class Parts>
void count_pages(bench::Command& command, const Parts& parts) {
    if (!command.pages().wanted()) return;
    bench::run_threads(command.threads(), [&](unsigned index) {
        bench::PageList pages(command.pages());
        for (std::size_t i = index; i < parts.size(); i += command.threads()) {
            parts[i].index.each_node([&](const void* node, std::size_t bytes) { pages.add(node, bytes); });
        }
        pages.count();
    });
}

struct Times {
    double build = 0, probe = 0;
};

template <class Index>
Times join(bench::Command& command, const std::vector<Record>& small, const std::vector<Record>& large) {
    struct Part {
        std::mutex lock;
        Index index;
    };
    constexpr std::uint64_t part_count = 256;
    std::vector<Part> parts(part_count);
    const auto part_of = [&](std::uint64_t key) -> Part& { return parts[key * part_count / small.size()]; };
    const unsigned threads = command.threads();
    Times times;
    times.build = bench::run_threads(threads, [&](unsigned index) {
        const std::uint64_t end = analytics::first_of(small.size(), index + 1, threads);
        for (std::uint64_t i = analytics::first_of(small.size(), index, threads); i < end; ++i) {
            Part& part = part_of(small[i].key);
            const std::lock_guard<std::mutex> held(part.lock);
            part.index.insert(&small[i]);
        }
    });
    std::vector<analytics::Joined> found(threads);
    times.probe = bench::run_threads(threads, [&](unsigned index) {
        analytics::Joined joined;
        const std::uint64_t end = analytics::first_of(large.size(), index + 1, threads);
        for (std::uint64_t i = analytics::first_of(large.size(), index, threads); i < end; ++i) {
            const Record* const row = part_of(large[i].key).index.find(large[i].key);
            if (row != nullptr) joined.add(row->key, row->value, large[i].value);
        }
        found[index] = joined;
    });
    count_pages(command, parts);
    analytics::check_join(large, found);
    return times;
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& kind = command.choice("index", "art|btree|skip-list|trie", "the structure");
    const auto& rows = command.option("rows", 1'000'000, analytics::paper_rows,
                                      "rows of the small table at scale 1; the large one has 16 times as many");
    command.parse();

    const std::vector<Record> small = analytics::make_rows(command.scaled(rows), command.seed());
    const std::vector<Record> large = analytics::make_probes(small.size(), command.seed());
    Times (*const kinds[])(bench::Command&, const std::vector<Record>&, const std::vector<Record>&) = {
        join<analytics::Art<Record>>, join<analytics::BTreeOfRows<Record>>, join<analytics::SkipList<Record>>,
        join<analytics::Trie<Record>>};
    const Times times = kinds[kind](command, small, large);
    command.figure("build_seconds", times.build);
    command.figure("probe_seconds", times.probe);
    return command.report({.operations = small.size() + large.size(), .seconds = times.build + times.probe});
}

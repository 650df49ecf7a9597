// Ordered maps (balanced trees): filled with random keys, searched, half erased, filled again.
#include <map>
#include <vector>

#include "support/command.h"
#include "support/random.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& keys = command.option("keys", 200'000, "keys of all threads' trees");
    const auto& rounds = command.option("rounds", 6, "rounds at scale 1");
    command.parse();

    const std::uint64_t todo = command.scaled(rounds);
    std::vector<std::uint64_t> done(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        const std::uint64_t mine = bench::share(keys, index, command.threads());
        std::map<std::uint64_t, std::uint64_t> tree;
        const auto key = [&](std::uint64_t round, std::uint64_t i) {
            return bench::scatter(((command.seed() + round) << 40) + (std::uint64_t{index} << 32) + i);
        };
        for (std::uint64_t round = 0; round < todo; ++round) {
            for (std::uint64_t i = 0; i < mine; ++i) tree.emplace(key(round, i), i);
            for (std::uint64_t i = 0; i < mine; ++i) {
                const auto found = tree.find(key(round, (i * 7919) % mine));
                if (found == tree.end() || found->second != (i * 7919) % mine) bench::fail("a key of a tree is lost");
            }
            // Those of the round before go, and every other of this one: the rest is in the next round's way.
            if (round != 0) {
                for (std::uint64_t i = 1; i < mine; i += 2) done[index] += tree.erase(key(round - 1, i));
            }
            for (std::uint64_t i = 0; i < mine; i += 2) done[index] += tree.erase(key(round, i));
            done[index] += mine;
            if (tree.size() != mine / 2)
                bench::fail("a tree of %zu keys has %llu", tree.size(), static_cast<unsigned long long>(mine / 2));
            if (round + 1 != todo) continue;
            bench::PageList pages(command.pages());
            for (const auto& entry : tree) pages.add(&entry, sizeof entry);
            pages.count();
        }
    });
    std::uint64_t operations = 0;
    for (const std::uint64_t count : done) operations += count;
    return command.report({.operations = operations, .seconds = seconds});
}

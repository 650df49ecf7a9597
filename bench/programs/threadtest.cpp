// Each thread allocates its share of the objects, then frees them, round after round. --paper: Hoard's README,
// `threadtest P 1000 10000 0 8`, whose objects are arrays of 8 pairs of numbers.
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& objects = command.option("objects", 30'000, 10'000, "objects of a round, shared out over the threads");
    const auto& rounds = command.option("rounds", 3'500, 1'000, "rounds at scale 1");
    const auto& size = command.option("size", 8, 64, "bytes of an object");
    command.parse();

    const std::uint64_t todo = command.scaled(rounds);
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        std::vector<void*> mine(bench::share(objects, index, command.threads()));
        bench::PageList pages(command.pages());
        for (std::uint64_t round = 0; round < todo; ++round) {
            const std::uint64_t tag = bench::scatter(command.seed() + round) ^ index;
            for (std::size_t i = 0; i < mine.size(); ++i) bench::stamp(mine[i] = bench::take(size), size, tag + i);
            if (round + 1 == todo) {
                for (void* object : mine) pages.add(object, size);
                pages.count();
            }
            for (std::size_t i = 0; i < mine.size(); ++i) {
                bench::verify(mine[i], size, tag + i);
                std::free(mine[i]);
            }
        }
    });
    return command.report({.operations = 2 * objects * todo, .seconds = seconds, .requested_bytes = objects * size});
}

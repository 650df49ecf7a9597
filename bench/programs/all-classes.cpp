// Fills and empties the heap size by size, from 16 bytes to 1 MiB: what one size has used must serve
// the next. Half of a size's objects are freed in order, half at random.
#include <algorithm>
#include <vector>

#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& rounds = command.option("rounds", 4, "rounds over all sizes at scale 1");
    const auto& bytes =
        command.option("bytes", std::uint64_t{16} << 20, "bytes of a size that live at once, of all threads");
    command.parse();

    const std::uint64_t todo = command.scaled(rounds);
    std::vector<std::uint64_t> made(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        std::vector<bench::Object> objects;
        for (std::uint64_t round = 0; round < todo; ++round) {
            // Sizes between those of the round before, so that all classes of all allocators come up.
            for (std::size_t size = 16 + 8 * (round % 2); size <= std::size_t{1} << 20;
                 size += std::max<std::size_t>(16, size / 5)) {
                objects.resize(bytes / command.threads() / size + 1);
                for (bench::Object& object : objects) object.allocate(size, random.next());
                made[index] += 2 * objects.size();
                if (round + 1 == todo) {
                    bench::PageList pages(command.pages());
                    for (const bench::Object& object : objects) pages.add(object.memory, size);
                    pages.count();
                }
                for (std::size_t i = 0; i < objects.size(); i += 2) objects[i].release();
                for (std::size_t i = objects.size() - 1; i > 0; --i)
                    std::swap(objects[i], objects[random.below(i + 1)]);
                for (bench::Object& object : objects) object.release();
            }
        }
    });
    std::uint64_t operations = 0;
    for (const std::uint64_t count : made) operations += count;
    return command.report({.operations = operations, .seconds = seconds, .requested_bytes = bytes});
}

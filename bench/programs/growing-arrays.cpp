// Arrays that grow by realloc from 64 bytes, each time by half and a little, a few at a time so that
// they are in one another's way. What an array holds is checked after each move.
#include <vector>

#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

constexpr std::size_t stride = 4096;

// A word in each page, and the last.
template <class Visit>
void each_word(std::size_t from, std::size_t words, Visit visit) {
    for (std::size_t i = from; i < words; i += stride / 8) visit(i);
    if (words != 0) visit(words - 1);
}

struct Array {
    std::uint64_t* words = nullptr;
    std::size_t length = 0;
    std::uint64_t tag = 0;

    void grow(std::size_t longer) {
        auto* const moved = static_cast<std::uint64_t*>(std::realloc(words, longer * 8));
        if (moved == nullptr) bench::fail("no memory for %zu bytes", longer * 8);
        words = moved;
        each_word(0, length, [&](std::size_t i) {
            if (words[i] != tag + i) bench::fail("word %zu of an array of %zu bytes was overwritten", i, length * 8);
        });
        each_word(0, longer, [&](std::size_t i) { words[i] = tag + i; });
        length = longer;
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& rounds = command.option("rounds", 24, "rounds at scale 1, of all threads");
    const auto& arrays = command.option("arrays", 4, "arrays that a thread grows in turn");
    const auto& largest =
        command.option("largest", std::uint64_t{256} << 20, "bytes of all arrays when fully grown, up to 16G");
    command.parse();

    const std::uint64_t todo = command.scaled(rounds);
    std::vector<std::uint64_t> steps(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        const std::size_t limit = largest / 8 / arrays / command.threads();
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t round = 0; round < mine; ++round) {
            std::vector<Array> growing(arrays);
            for (std::uint64_t unfinished = arrays; unfinished != 0;) {
                unfinished = 0;
                for (Array& array : growing) {
                    if (array.length >= limit) continue;
                    if (array.length == 0) array.tag = random.next();
                    const std::size_t longer =
                        array.length == 0 ? 8 : array.length + array.length / 2 + random.below(array.length / 8 + 1);
                    array.grow(longer < limit ? longer : limit);
                    ++steps[index];
                    ++unfinished;
                }
            }
            if (round + 1 == mine) {
                bench::PageList pages(command.pages());
                for (const Array& array : growing) pages.add(array.words, array.length * 8);
                pages.count();
            }
            for (const Array& array : growing) std::free(array.words);
        }
    });
    std::uint64_t operations = 0;
    for (const std::uint64_t count : steps) operations += count;
    return command.report({.operations = operations, .seconds = seconds, .requested_bytes = largest});
}

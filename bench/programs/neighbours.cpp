// Listing 1 of the JArena paper with malloc: each thread allocates and writes blocks, then frees those
// of its left neighbour, so that each block goes back from a thread that did not allocate it.
#include <algorithm>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& rounds = command.option("rounds", 5, "rounds at scale 1, after one to warm up");
    const auto& blocks = command.option("blocks", 64, "blocks of a thread and round");
    const auto& size = command.option("size", std::uint64_t{1} << 20, "bytes of a block");
    command.parse();

    const unsigned threads = command.threads();
    const std::uint64_t todo = command.scaled(rounds);
    std::vector<std::vector<unsigned char*>> owned(threads, std::vector<unsigned char*>(blocks));
    bench::Barrier barrier(threads);
    std::vector<double> writing(threads);
    const double seconds = bench::run_threads(threads, [&](unsigned index) {
        const unsigned left = (index + threads - 1) % threads;
        for (std::uint64_t round = 0; round <= todo; ++round) {
            const auto mark = static_cast<unsigned char>(round * threads + index);
            for (unsigned char*& block : owned[index]) block = static_cast<unsigned char*>(bench::take(size));
            const double start = bench::now();
            for (unsigned char* block : owned[index]) std::memset(block, mark, size);
            if (round != 0) writing[index] += bench::now() - start;
            if (round == todo) {
                bench::PageList pages(command.pages());
                for (unsigned char* block : owned[index]) pages.add(block, size);
                pages.count();
            }
            barrier.wait();
            const auto expected = static_cast<unsigned char>(round * threads + left);
            for (unsigned char* block : owned[left]) {
                if (block[0] != expected || std::memcmp(block, block + 1, size - 1) != 0)
                    bench::fail("a block of thread %u was overwritten", left);
                std::free(block);
            }
            barrier.wait();
        }
    });
    command.figure("write_seconds", *std::max_element(writing.begin(), writing.end()));
    return command.report(
        {.operations = (todo + 1) * threads * blocks, .seconds = seconds, .requested_bytes = threads * blocks * size});
}

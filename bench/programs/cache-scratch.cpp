// The first thread allocates an object for each thread, close together. Each frees the one it got and
// then allocates, writes and frees its own. Slow where what was freed comes back to two threads in
// one cache line (passive false sharing). --paper: Hoard's README, `cache-scratch P 100 8 1000000`.
#include <vector>

#include "support/counter.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& size = command.option("size", 8, 8, "bytes of an object");
    const auto& rounds = command.option("rounds", 400'000, bench::Papers{100, bench::Papers::each_thread}, "allocations at scale 1, of all threads");
    const auto& writes = command.option("writes", 500, bench::Papers{1'000'000, bench::Papers::shared_out}, "writes to each byte of an allocation");
    command.parse();

    const std::uint64_t todo = command.scaled(rounds);
    std::vector<void*> given(command.threads());
    for (void*& object : given) bench::stamp(object = bench::take(size), size, command.seed());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::verify(given[index], size, command.seed());
        std::free(given[index]);
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            void* const object = bench::take(size);
            bench::count_up(object, size, writes);
            if (i + 1 == mine) {
                bench::PageList pages(command.pages());
                pages.add(object, size);
                pages.count();
            }
            std::free(object);
        }
    });
    return command.report({.operations = todo, .seconds = seconds, .requested_bytes = size * command.threads()});
}

// Each thread allocates an object, writes it many times and frees it. Slow where the allocator gives
// objects of one cache line to two threads (active false sharing). --paper: Hoard's README, as of cache-scratch.
#include "support/counter.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& size = command.option("size", 8, 8, "bytes of an object");
    const auto& rounds = command.option("rounds", 400'000, bench::Papers{100, bench::Papers::each_thread}, "allocations at scale 1, of all threads");
    const auto& writes = command.option("writes", 500, bench::Papers{1'000'000, bench::Papers::shared_out}, "writes to each byte of an allocation");
    command.parse();

    const std::uint64_t todo = command.scaled(rounds);
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
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

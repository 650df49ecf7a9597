// Does malloc cost more with many threads? The same number of replacements by 8 threads and by 2,000,
// in processor time for each, the threads' ends included, their starts not.
#include "support/churn.h"
#include "support/cpu_time.h"
#include "support/threads.h"

namespace {

double ns_per_operation(bench::Command& command, unsigned threads, std::uint64_t todo, std::uint64_t objects,
                        double& seconds) {
    bench::Barrier gate(threads);
    double start = 0;
    seconds += bench::run_threads(threads, [&](unsigned index) {
        if (index == 0) start = bench::cpu_time();
        gate.wait();
        bench::Churn churn(objects, bench::Random(command.seed(), index), 16, 1'000);
        churn.replace(bench::share(todo, index, threads));
        bench::PageList pages(command.pages());
        churn.add_to(pages);
        pages.count();
    });
    return (bench::cpu_time() - start) * 1e9 / static_cast<double>(2 * todo);
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& replacements =
        command.option("replacements", 24'000'000, "replacements at scale 1, by the few and by the many");
    const auto& objects = command.option("objects", 50, "objects of a thread");
    const auto& few = command.option("few", 8, "threads of the first run");
    command.parse();

    const std::uint64_t todo = command.scaled(replacements);
    double seconds = 0;
    const double by_few = ns_per_operation(command, static_cast<unsigned>(few), todo, objects, seconds);
    const double by_many = ns_per_operation(command, command.threads(), todo, objects, seconds);
    command.figure("ns_per_operation_by_few", by_few);
    command.figure("ns_per_operation_by_many", by_many);
    command.figure("ratio", by_many / by_few);
    return command.report({.operations = 4 * todo, .seconds = seconds});
}

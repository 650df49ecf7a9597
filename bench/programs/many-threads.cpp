// Thousands of threads that live at the same time and take turns, as a server's threads do that wait
// for their clients most of the time: what does a thread cost while it holds little?
#include "support/churn.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& turns = command.option("turns", 10, "turns of each thread at scale 1");
    const auto& replacements = command.option("replacements", 400, "replacements of a turn");
    const auto& objects = command.option("objects", 50, "objects of a thread");
    const auto& largest = command.option("largest", 1'000, "bytes of the largest object");
    command.parse();

    const std::uint64_t todo = command.scaled(turns);
    bench::Barrier turn(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Churn churn(objects, bench::Random(command.seed(), index), 16, largest);
        for (std::uint64_t t = 0; t < todo; ++t) {
            churn.replace(replacements);
            turn.wait();
        }
        bench::PageList pages(command.pages());
        churn.add_to(pages);
        pages.count();
    });
    return command.report({.operations = 2 * todo * replacements * command.threads(), .seconds = seconds});
}

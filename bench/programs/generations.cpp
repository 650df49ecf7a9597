// Short-lived threads: each takes over what the thread before it left, allocates objects of its own,
// frees half of them and what it took over, leaves the rest to the next, and ends.
#include <vector>

#include "support/letter.h"
#include "support/threads.h"

namespace {

struct Lane {
    std::vector<void*> left;  // by the thread before
    std::vector<void*> made;
    bench::Random random;
    unsigned low, high;
    bench::Pages* pages = nullptr;  // to be counted in: the last life of the lane
};

void* one_life(void* argument) {
    auto& lane = *static_cast<Lane*>(argument);
    for (void*& letter : lane.made)
        letter =
            bench::write_letter(lane.random.size(lane.low, lane.high), static_cast<std::uint32_t>(lane.random.next()));
    if (lane.pages != nullptr) {
        bench::PageList pages(*lane.pages);
        for (const void* letter : lane.made) pages.add(letter, bench::read_letter(letter));
        pages.count();
    }
    for (void* letter : lane.left) bench::burn_letter(letter);
    for (std::size_t i = 0; i < lane.made.size(); ++i) {
        if (i % 2 == 0) {
            bench::burn_letter(lane.made[i]);
        } else {
            lane.left[i / 2] = lane.made[i];
        }
    }
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& lives = command.option("lives", 10'000, "threads at scale 1");
    const auto& objects = command.option("objects", 1'000, "objects that a thread allocates");
    const auto& low = command.option("low", 4, "the smallest object has 2^low bytes, at least 16");
    const auto& high = command.option("high", 12, "the largest has less than 2^high");
    command.parse();

    const std::uint64_t todo = command.scaled(lives);
    std::vector<Lane> lanes;
    for (unsigned t = 0; t < command.threads(); ++t) {
        lanes.push_back({std::vector<void*>(objects / 2), std::vector<void*>(objects / 2 * 2),
                         bench::Random(command.seed(), t), static_cast<unsigned>(low), static_cast<unsigned>(high)});
    }
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            if (i + 1 == mine) lanes[index].pages = &command.pages();
            pthread_join(bench::start_thread(one_life, &lanes[index]), nullptr);
        }
    });
    for (Lane& lane : lanes) {
        for (void* letter : lane.left) bench::burn_letter(letter);
    }
    return command.report({.operations = todo * objects / 2 * 2, .seconds = seconds});
}

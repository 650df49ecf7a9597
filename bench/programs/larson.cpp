// A server: each thread replaces random objects of a set, then hands the set to a thread that follows
// it, and ends. The objects that a thread frees were mostly allocated by threads that have gone. Who
// allocates the first objects of a set makes its table as well.
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

struct Lane {
    std::vector<bench::Object> objects;
    std::uint64_t count = 0;
    bench::Random random;
    std::uint64_t replacements = 0;  // of one generation
    std::uint64_t smallest = 0;
    std::uint64_t largest = 0;
    bool empty = true;
    bench::Pages* pages = nullptr;  // to be counted in: the last generation of the lane

    void fill() {
        objects.resize(count);
        for (bench::Object& object : objects) object.allocate(random.between(smallest, largest), random.next());
        empty = false;
    }
    void replace() {
        bench::Object& object = objects[random.below(objects.size())];
        object.release();
        object.allocate(random.between(smallest, largest), random.next());
    }
};

void* generation(void* argument) {
    auto& lane = *static_cast<Lane*>(argument);
    if (lane.empty) lane.fill();
    for (std::uint64_t i = 0; i < lane.replacements; ++i) lane.replace();
    if (lane.pages != nullptr) {
        bench::PageList pages(*lane.pages);
        for (const bench::Object& object : lane.objects) pages.add(object.memory, object.bytes);
        pages.count();
    }
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& objects = command.option("objects", 5'000, "objects of a thread");
    const auto& smallest = command.option("smallest", 8, "bytes of the smallest object");
    const auto& largest = command.option("largest", 1'000, "bytes of the largest object");
    const auto& replacements = command.option("replacements", 24'000'000, "replacements at scale 1, of all threads");
    const auto& lifetime = command.option("lifetime", 100'000, "replacements before a thread hands over and ends");
    const auto& first =
        command.option("first", 1, "who allocates the first objects: 1 main, 2 each set's first thread");
    command.parse();

    const std::uint64_t todo = command.scaled(replacements);
    std::vector<Lane> lanes;
    for (unsigned t = 0; t < command.threads(); ++t) {
        Lane lane{{}, objects, bench::Random(command.seed(), t), 0, smallest, largest, true, nullptr};
        if (first == 1) lane.fill();
        lanes.push_back(std::move(lane));
    }
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        Lane& lane = lanes[index];
        for (std::uint64_t left = bench::share(todo, index, command.threads()); left != 0; left -= lane.replacements) {
            lane.replacements = left < lifetime ? left : lifetime;
            if (left <= lifetime) lane.pages = &command.pages();
            pthread_join(bench::start_thread(generation, &lane), nullptr);
        }
    });
    std::uint64_t live = 0;
    for (Lane& lane : lanes) {
        for (bench::Object& object : lane.objects) {
            live += object.bytes;
            object.release();
        }
    }
    return command.report({.operations = 2 * todo, .seconds = seconds, .requested_bytes = live});
}

// The microbenchmark of the study of allocators for data analytics: an operation allocates and writes
// an object, or reads one and frees it; the smaller a size class, the more frequent in proportion.
// 100 million operations a thread in the original and with --paper; else fewer, and shared out.
#include <bit>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

// 16 bytes to 64 KiB: class 2^k has probability 2^(3-k).
std::size_t random_size(bench::Random& random) {
    const auto halvings = static_cast<unsigned>(std::countr_zero(random.next() >> 20 | std::uint64_t{1} << 12));
    return std::size_t{16} << halvings;
}

void read(const bench::Object& object) {
    const auto* const byte = static_cast<const unsigned char*>(object.memory);
    std::size_t different = 0;
    for (std::size_t i = 0; i < object.bytes; ++i) different += byte[i] != (object.tag & 0xff);
    if (different != 0) bench::fail("%zu bytes of an object of %zu were overwritten", different, object.bytes);
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& operations = command.option("operations", 10'000'000, bench::Papers{100'000'000, bench::Papers::each_thread}, "operations at scale 1, of all threads");
    const auto& places = command.option("places", 200'000, "objects that can live at once, of all threads");
    command.parse();

    const std::uint64_t todo = command.scaled(operations);
    std::vector<std::uint64_t> most(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        std::vector<bench::Object> objects(bench::share(places, index, command.threads()) + 1);
        std::uint64_t live = 0, peak = 0;
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            bench::Object& object = objects[random.below(objects.size())];
            if (object.memory == nullptr) {
                object.bytes = random_size(random);
                object.memory = bench::take(object.bytes);
                object.tag = i;
                std::memset(object.memory, static_cast<int>(i & 0xff), object.bytes);
                live += object.bytes;
                if (live > peak) peak = live;
            } else {
                read(object);
                std::free(object.memory);
                object.memory = nullptr;
                live -= object.bytes;
            }
        }
        bench::PageList pages(command.pages());
        for (const bench::Object& object : objects) {
            if (object.memory != nullptr) pages.add(object.memory, object.bytes);
        }
        pages.count();
        for (bench::Object& object : objects) std::free(object.memory);
        most[index] = peak;
    });
    std::uint64_t requested = 0;
    for (const std::uint64_t peak : most) requested += peak;
    return command.report({.operations = todo, .seconds = seconds, .requested_bytes = requested});
}

// calloc of all sizes up to 1 MiB, mostly small: each object is checked to be zero, written, and freed
// at a random later time.
#include <vector>

#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& objects = command.option("objects", 6'000'000, "objects at scale 1, of all threads");
    const auto& places = command.option("places", 4'000, "objects that live at once, of all threads");
    command.parse();

    const std::uint64_t todo = command.scaled(objects);
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        std::vector<bench::Object> held(bench::share(places, index, command.threads()) + 1);
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            bench::Object& object = held[random.below(held.size())];
            object.release();
            // One in 256 is large.
            const std::size_t bytes = random.below(256) == 0 ? random.size(12, 20) : random.size(4, 11);
            auto* const memory = static_cast<unsigned char*>(std::calloc(bytes / 8, 8));
            if (memory == nullptr) bench::fail("no memory for %zu bytes", bytes);
            object = {memory, bytes / 8 * 8, random.next()};
            // All of a small object, and the start of each page of a large one.
            const std::size_t stride = bytes < 4096 ? 8 : 4096;
            for (std::size_t at = 0; at < object.bytes; at += stride) {
                std::uint64_t word;
                std::memcpy(&word, memory + at, 8);
                if (word != 0) bench::fail("byte %zu of %zu from calloc is not zero", at, object.bytes);
                if (stride != 8) std::memcpy(memory + at, &object.tag, 8);
            }
            if (stride == 8) std::memset(memory, 0xa5, object.bytes);
            bench::stamp(memory, object.bytes, object.tag);
        }
        bench::PageList pages(command.pages());
        for (const bench::Object& object : held) {
            if (object.memory != nullptr) pages.add(object.memory, object.bytes);
        }
        pages.count();
        for (bench::Object& object : held) object.release();
    });
    return command.report({.operations = 2 * todo, .seconds = seconds});
}

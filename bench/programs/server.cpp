// A server whose mix of sizes drifts: each request allocates a few objects and frees most of them at
// its end; some stay in a session, which is dropped at a random later time. Hour by hour the usual
// size changes, so what one hour has left lies in the way of the next (fragmentation).
#include <algorithm>
#include <vector>

#include "support/letter.h"
#include "support/threads.h"

namespace {

// The usual size of an hour, as a power of two: up and down between 2^5 and 2^13, not in order.
constexpr unsigned usual[] = {6, 8, 11, 7, 12, 5, 9, 13, 6, 10, 5, 8};

std::size_t request_size(bench::Random& random, std::uint64_t hour) {
    // Three of four objects are of the usual size, give or take a doubling; the others of any.
    if (random.below(4) == 0) return random.size(4, 14);
    const unsigned e = usual[hour % std::size(usual)];
    return random.size(e - 1, e + 1);
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& requests = command.option("requests", 80'000, "requests of an hour at scale 1, of all threads");
    const auto& hours = command.option("hours", 12, "hours");
    const auto& objects = command.option("objects", 20, "objects of a request");
    const auto& live = command.option("live", std::uint64_t{64} << 20, "bytes that all sessions hold");
    command.parse();

    const std::uint64_t todo = command.scaled(requests);
    std::vector<std::uint64_t> most(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        struct Kept {
            void* letter;
            std::size_t bytes;
        };
        std::vector<Kept> kept;
        std::vector<void*> brief;
        std::uint64_t held = 0;
        const std::uint64_t limit = live / command.threads();
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t hour = 0; hour < hours; ++hour) {
            for (std::uint64_t r = 0; r < mine; ++r) {
                for (std::uint64_t i = 0; i < objects; ++i) {
                    const std::size_t bytes = std::max<std::size_t>(16, request_size(random, hour));
                    void* const letter = bench::write_letter(bytes, static_cast<std::uint32_t>(r));
                    if (random.below(4) != 0) {
                        brief.push_back(letter);
                    } else {
                        kept.push_back({letter, bytes});
                        held += bytes;
                    }
                }
                for (void* letter : brief) bench::burn_letter(letter);
                brief.clear();
                while (held > limit) {
                    Kept& gone = kept[random.below(kept.size())];
                    held -= gone.bytes;
                    bench::burn_letter(gone.letter);
                    gone = kept.back();
                    kept.pop_back();
                }
                if (held > most[index]) most[index] = held;
            }
        }
        bench::PageList pages(command.pages());
        for (const Kept& object : kept) pages.add(object.letter, object.bytes);
        pages.count();
        for (const Kept& object : kept) bench::burn_letter(object.letter);
    });
    std::uint64_t requested = 0;
    for (const std::uint64_t peak : most) requested += peak;
    return command.report({.operations = 2 * todo * hours * objects, .seconds = seconds, .requested_bytes = requested});
}

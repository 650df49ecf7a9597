// Many to many: each thread puts a new object into a random place of a board that all share, and frees
// what it finds there, which is mostly another thread's.
#include <atomic>
#include <vector>

#include "support/letter.h"
#include "support/threads.h"

namespace {

// Letters of a thread whose pages are looked at: its last. Some of them are freed by then.
constexpr std::uint64_t counted = 256;

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& objects = command.option("objects", 10'000'000, "objects at scale 1, of all threads");
    const auto& places = command.option("places", 40'000, "places of the board");
    const auto& smallest = command.option("smallest", 16, "bytes of the smallest object, at least 16");
    const auto& largest = command.option("largest", 512, "bytes of the largest object");
    command.parse();

    const std::uint64_t todo = command.scaled(objects);
    std::vector<std::atomic<void*>> board(places);
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        bench::PageList pages(command.pages());
        for (std::uint64_t i = 0; i < mine; ++i) {
            const std::size_t bytes = random.between(smallest, largest);
            void* const letter = bench::write_letter(bytes, static_cast<std::uint32_t>(i));
            if (mine - i <= counted) pages.add(letter, bytes);
            bench::burn_letter(board[random.below(places)].exchange(letter, std::memory_order_acq_rel));
        }
        pages.count();
    });
    std::uint64_t live = 0;
    for (std::atomic<void*>& place : board) {
        if (place != nullptr) live += bench::read_letter(place);
        bench::burn_letter(place);
    }
    return command.report({.operations = 2 * todo, .seconds = seconds, .requested_bytes = live});
}

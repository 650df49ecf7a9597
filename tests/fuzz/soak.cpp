// The player of the fuzzer's interface target, with random choices: so many operations by so many threads that hand
// blocks to each other, on four made-up nodes, with the structures of all nodes walked meanwhile.
// scripts/soak.sh builds and runs it. The seed is printed.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "api/player.h"
#include "api/whole_heap.h"

namespace {

using namespace fuzz;

constexpr std::size_t slots = 1500;
constexpr std::size_t budget = std::size_t{24} << 20;
constexpr std::uint64_t of_a_thread = 100'000;  // operations, then the next thread goes on with its blocks

unsigned long long number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: soak OPERATIONS THREADS SECONDS SEED\n");
        return 2;
    }
    const std::uint64_t operations = number(argv[1]);
    const std::size_t threads = number(argv[2]);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(number(argv[3]));
    const std::uint64_t seed = number(argv[4]);
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);

    Table table(false);
    std::vector<std::unique_ptr<Input>> inputs;
    std::vector<std::unique_ptr<Player>> players;
    for (std::size_t i = 0; i < threads; ++i) {
        inputs.push_back(std::make_unique<Input>(seed + i * 7777777));
        players.push_back(std::make_unique<Player>(*inputs.back(), table, slots, budget, true));
    }
    std::atomic<std::uint64_t> done{0};
    std::vector<std::thread> lanes;
    std::size_t walks = 0;
    for (std::size_t i = 0; i < threads; ++i)
        lanes.emplace_back([&, i] {
            while (done.load() < operations && std::chrono::steady_clock::now() < end)
                std::thread([&] {
                    for (std::uint64_t n = 0; n < of_a_thread; ++n) players[i]->step();
                    done.fetch_add(of_a_thread);
                    if (i == 0) validate_heap(), ++walks;
                }).join();
            players[i]->release_blocks();
        });
    for (std::thread& t : lanes) t.join();
    for (Table::Mailbox& box : table.mailboxes)
        if (box.block.p != nullptr) Player::release(*inputs.front(), box.block);
    for (auto& player : players) player->destroy_heaps();
    validate_heap();
    std::printf(
        "%llu operations by %zu threads at a time, %llu blocks changed hands, all structures walked %zu times\n",
        static_cast<unsigned long long>(done.load()), threads, static_cast<unsigned long long>(table.crossed.load()),
        walks + 1);
    return done.load() >= operations ? 0 : 3;
}

// Any sequence of calls of the whole interface, by one to four threads that hand blocks to each other, on four made-up
// nodes. The first byte says how many threads, and whether they play in turn, which repeats, or at once, each its part
// of the bytes, which looks for races.
#include <atomic>
#include <thread>

#include "api/player.h"
#include "api/whole_heap.h"

namespace {

using namespace fuzz;

// A thread that plays when it is told to. Its successor goes on with the same blocks.
class Worker {
public:
    Worker() { start(); }
    ~Worker() { end(); }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    template <class Work>
    void let(Work work) {
        work_ = [](void* context) { (*static_cast<Work*>(context))(); };
        context_ = &work;
        tell(todo);
        wait_for(idle);
    }
    void renew() {
        end();
        start();
    }

private:
    enum : int { idle, todo, over };

    void tell(int what) {
        state_.store(what, std::memory_order_release);
        state_.notify_all();
    }
    void wait_for(int what) {
        for (int now; (now = state_.load(std::memory_order_acquire)) != what;)
            state_.wait(now, std::memory_order_acquire);
    }
    void start() {
        state_.store(idle);
        thread_ = std::thread([this] {
            for (;;) {
                state_.wait(idle, std::memory_order_acquire);
                if (state_.load(std::memory_order_acquire) == over) return;
                work_(context_);
                tell(idle);
            }
        });
    }
    void end() {
        tell(over);
        thread_.join();
    }

    std::atomic<int> state_{idle};
    void (*work_)(void*) = nullptr;
    void* context_ = nullptr;
    std::thread thread_;
};

constexpr std::size_t slots = 48;
constexpr std::size_t budget = std::size_t{16} << 20;

using Players = std::vector<std::unique_ptr<Player>>;

void play_in_turn(Input& in, Players& players) {
    std::vector<std::unique_ptr<Worker>> workers;
    for (auto& player : players) {
        player->set_others(&players);
        workers.push_back(std::make_unique<Worker>());
    }
    while (in.more()) {
        const std::size_t who = in.below(players.size());
        const std::size_t how = in.below(32);
        if (how == 31) workers[who]->renew();
        if (how == 30) validate_heap();
        workers[who]->let([&] {
            for (std::size_t i = 0; i <= how && in.more(); ++i) players[who]->step();
        });
    }
    // Half of the threads leave their blocks to the next one.
    for (std::size_t i = 0; i < players.size(); ++i)
        workers[(i + i % 2) % players.size()]->let([&] { players[i]->release_blocks(); });
}

void play_at_once(std::vector<std::unique_ptr<Input>>& inputs, Players& players) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < players.size(); ++i)
        threads.emplace_back([&, i] {
            while (inputs[i]->more()) players[i]->step();
            players[i]->release_blocks();
        });
    for (std::thread& t : threads) t.join();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t threads = 1 + (data[0] & 3);
    const bool at_once = (data[0] & 4) != 0;
    ++data, --size;

    Table table(!at_once);
    Players players;
    std::vector<std::unique_ptr<Input>> inputs;
    const std::size_t part = at_once ? size / threads : size;
    for (std::size_t i = 0; i < threads; ++i) {
        if (at_once || i == 0) inputs.push_back(std::make_unique<Input>(data + i * part, part));
        players.push_back(std::make_unique<Player>(*inputs.back(), table, slots, budget));
    }
    if (at_once) play_at_once(inputs, players);
    else play_in_turn(*inputs.front(), players);
    for (Table::Mailbox& box : table.mailboxes)
        if (box.block.p != nullptr) Player::release(*inputs.front(), box.block);
    for (auto& player : players) player->destroy_heaps();
    static unsigned runs = 0;
    if (++runs % 64 == 0) validate_heap();
    return 0;
}

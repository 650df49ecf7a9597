// Pairs of threads: one allocates, the other frees everything it is sent. The queue between them hands
// over whole batches and sleeps when it is full or empty, so that it costs little beside the objects.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "support/letter.h"
#include "support/threads.h"

namespace {

constexpr std::size_t batch_length = 256;
constexpr std::size_t queue_length = 16;

class Queue {
public:
    void send(const void* const* letters) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return filled_ - emptied_ < queue_length; });
        std::memcpy(batches_[filled_ % queue_length], letters, sizeof batches_[0]);
        ++filled_;
        lock.unlock();
        changed_.notify_one();
    }
    void receive(void** letters) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return filled_ != emptied_; });
        std::memcpy(letters, batches_[emptied_ % queue_length], sizeof batches_[0]);
        ++emptied_;
        lock.unlock();
        changed_.notify_one();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t filled_ = 0;
    std::uint64_t emptied_ = 0;
    const void* batches_[queue_length][batch_length];
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& objects = command.option("objects", 16'000'000, "objects at scale 1, of all pairs");
    const auto& smallest = command.option("smallest", 16, "bytes of the smallest object, at least 16");
    const auto& largest = command.option("largest", 512, "bytes of the largest object");
    command.parse();

    const unsigned pairs = command.threads() < 2 ? 1 : command.threads() / 2;
    const std::uint64_t batches = command.scaled(objects) / batch_length / pairs + 1;
    std::deque<Queue> queues(pairs);
    const double seconds = bench::run_threads(2 * pairs, [&](unsigned index) {
        Queue& queue = queues[index / 2];
        void* letters[batch_length];
        if (index % 2 == 0) {
            bench::Random random(command.seed(), index);
            bench::PageList pages(command.pages());
            for (std::uint64_t b = 0; b < batches; ++b) {
                for (void*& letter : letters)
                    letter = bench::write_letter(random.between(smallest, largest), static_cast<std::uint32_t>(b));
                if (b + 1 == batches) {
                    for (const void* letter : letters) pages.add(letter, bench::read_letter(letter));
                    pages.count();
                }
                queue.send(letters);
            }
        } else {
            for (std::uint64_t b = 0; b < batches; ++b) {
                queue.receive(letters);
                for (void* letter : letters) bench::burn_letter(letter);
            }
        }
    });
    return command.report({.operations = 2 * batches * batch_length * pairs, .seconds = seconds});
}

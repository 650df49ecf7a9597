// A pipeline that finds what a stream has twice, as dedup does: one thread reads large blocks, others cut them into
// chunks by their content and look each up in a table that all share, others compress new chunks, and one writes.
// Each stage frees what the one before allocated.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

struct Chunk {
    unsigned char* data;
    std::size_t bytes;
    std::uint64_t sum;  // of what was read
    bool packed;
};

// What goes from stage to stage; a producer waits where it is full. Ends when all producers have.
template <class Item>
class Queue {
public:
    explicit Queue(unsigned producers) : producers_(producers) {}
    void put(Item item) {
        std::unique_lock hold(lock_);
        space_.wait(hold, [this] { return items_.size() < room; });
        items_.push_back(item);
        there_.notify_one();
    }
    void done() {
        const std::lock_guard hold(lock_);
        if (--producers_ == 0) there_.notify_all();
    }
    bool take(Item& item) {
        std::unique_lock hold(lock_);
        there_.wait(hold, [this] { return !items_.empty() || producers_ == 0; });
        if (items_.empty()) return false;
        item = items_.front();
        items_.pop_front();
        space_.notify_one();
        return true;
    }

private:
    static constexpr std::size_t room = 256;
    std::mutex lock_;
    std::condition_variable there_, space_;
    std::deque<Item> items_;
    unsigned producers_;
};

std::uint64_t sum_of(const unsigned char* data, std::size_t bytes) {
    std::uint64_t sum = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < bytes; ++i) sum = (sum ^ data[i]) * 0x100000001b3;
    return sum;
}

// Which chunks were there before: chains of nodes, and a lock for each part, as dedup's table has.
class Seen {
public:
    ~Seen() {
        for (Part& part : parts_)
            for (Node* node = part.head; node != nullptr;) {
                Node* const gone = node;
                node = node->next;
                std::free(gone);
            }
    }
    bool add(std::uint64_t sum) {
        Part& part = parts_[sum % count];
        const std::lock_guard hold(part.lock);
        for (const Node* node = part.head; node != nullptr; node = node->next) {
            if (node->tag != bench::scatter(node->sum)) bench::fail("a node of the table was overwritten");
            if (node->sum == sum) return false;
        }
        part.head = new (bench::take(sizeof(Node))) Node{part.head, sum, bench::scatter(sum)};
        return true;
    }

private:
    static constexpr unsigned count = 4096;
    struct Node {
        Node* next;
        std::uint64_t sum, tag;
    };
    struct Part {
        std::mutex lock;
        Node* head = nullptr;
    };
    std::vector<Part> parts_{count};
};

// Runs of a byte become the byte and how many: twice the bytes at most, and the buffer grows as they come.
void pack(Chunk& chunk) {
    std::size_t room = 64, used = 0;
    auto* out = static_cast<unsigned char*>(bench::take(room));
    for (std::size_t i = 0; i < chunk.bytes;) {
        std::size_t run = 1;
        while (i + run < chunk.bytes && run < 255 && chunk.data[i + run] == chunk.data[i]) ++run;
        if (used + 2 > room) {
            room *= 2;
            out = static_cast<unsigned char*>(std::realloc(out, room));
            if (out == nullptr) bench::fail("no memory for %zu bytes", room);
        }
        out[used++] = chunk.data[i];
        out[used++] = static_cast<unsigned char>(run);
        i += run;
    }
    std::free(chunk.data);
    chunk = {out, used, chunk.sum, true};
}

std::uint64_t sum_unpacked(const Chunk& chunk) {
    std::uint64_t sum = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < chunk.bytes; i += 2)
        for (unsigned k = 0; k < chunk.data[i + 1]; ++k) sum = (sum ^ chunk.data[i]) * 0x100000001b3;
    return sum;
}

// Made up: pieces of a few bytes that repeat, a third of the blocks seen before.
void fill(unsigned char* block, std::size_t bytes, std::uint64_t seed) {
    bench::Random random(seed);
    for (std::size_t i = 0; i < bytes;) {
        const auto letter = static_cast<unsigned char>(random.next() >> 56);
        for (std::uint64_t run = random.between(1, 24); run > 0 && i < bytes; --run) block[i++] = letter;
    }
}

struct Block {
    unsigned char* data;
    std::size_t bytes;
    std::uint64_t sum;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& blocks = command.option("blocks", 1200, "blocks that are read at scale 1");
    const auto& block_bytes = command.option("block-bytes", 128 << 10, "bytes of a block");
    command.parse();

    // A reader, a writer, and at least one thread for each stage between.
    const unsigned cutters = command.threads() / 2 + 1, packers = command.threads() / 2 + 1;
    const std::uint64_t todo = command.scaled(blocks);
    Queue<Block> read(1);
    Queue<Chunk> cut(cutters), ready(packers);
    Seen seen;
    std::uint64_t written = 0, fresh = 0;
    std::atomic<std::uint64_t> cut_bytes{0};
    const double seconds = bench::run_threads(2 + cutters + packers, [&](unsigned index) {
        if (index == 0) {
            for (std::uint64_t i = 0; i < todo; ++i) {
                auto* const data = static_cast<unsigned char*>(bench::take(block_bytes));
                fill(data, block_bytes, bench::scatter(command.seed()) + (i % 3 == 2 ? i / 2 : i));
                read.put({data, block_bytes, sum_of(data, block_bytes)});
            }
            read.done();
        } else if (index == 1) {
            Chunk chunk{};
            while (ready.take(chunk)) {
                if (chunk.packed) {
                    if (sum_unpacked(chunk) != chunk.sum) bench::fail("a chunk was overwritten");
                    ++fresh;
                }
                ++written;
                std::free(chunk.data);
            }
        } else if (index < 2 + cutters) {
            Block block{};
            bench::PageList pages(command.pages());
            while (read.take(block)) {
                if (sum_of(block.data, block.bytes) != block.sum) bench::fail("a block was overwritten");
                pages.add(block.data, block.bytes);
                if (command.pages().wanted()) pages.count();
                for (std::size_t first = 0; first < block.bytes;) {
                    // A chunk ends where the bytes say so: the same content is cut the same way.
                    std::size_t bytes = std::min<std::size_t>(512, block.bytes - first);
                    std::uint64_t rolling = 0;
                    while (first + bytes < block.bytes && bytes < 8192) {
                        rolling = rolling * 31 + block.data[first + bytes++];
                        if ((rolling & 0xfff) == 0x7ff) break;
                    }
                    auto* const data = static_cast<unsigned char*>(bench::take(bytes));
                    std::memcpy(data, block.data + first, bytes);
                    cut.put({data, bytes, sum_of(data, bytes), false});
                    cut_bytes += bytes;
                    first += bytes;
                }
                std::free(block.data);
            }
            cut.done();
        } else {
            Chunk chunk{};
            while (cut.take(chunk)) {
                if (sum_of(chunk.data, chunk.bytes) != chunk.sum) bench::fail("a chunk was overwritten");
                if (seen.add(chunk.sum)) pack(chunk);
                ready.put(chunk);
            }
            ready.done();
        }
    });
    if (cut_bytes != todo * block_bytes) bench::fail("bytes were lost");
    command.figure("chunks", static_cast<double>(written));
    command.figure("new_chunks", static_cast<double>(fresh));
    return command.report({.operations = written, .seconds = seconds});
}

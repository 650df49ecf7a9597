// Blocks of 256 KiB to 64 MiB, each doubling equally likely, replaced at random; a word of each page and
// the last are written and checked. What counts is page faults, and memory that was not given back.
#include <vector>

#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

constexpr std::size_t stride = 4096;

struct Block {
    unsigned char* bytes = nullptr;
    std::size_t size = 0;
    std::uint64_t tag = 0;

    void release() {
        for (std::size_t at = 0; at < size; at += stride) bench::verify(bytes + at, 8, tag + at);
        if (size != 0) bench::verify(bytes + size - 8, 8, tag + size - 8);
        std::free(bytes);
        size = 0;
    }
    void allocate(std::size_t wanted, std::uint64_t with_tag) {
        bytes = static_cast<unsigned char*>(bench::take(wanted));
        size = wanted;
        tag = with_tag;
        for (std::size_t at = 0; at < size; at += stride) bench::stamp(bytes + at, 8, tag + at);
        bench::stamp(bytes + size - 8, 8, tag + size - 8);
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& blocks = command.option("blocks", 600, "blocks at scale 1, of all threads");
    const auto& places = command.option("places", 20, "blocks that live at once, of all threads");
    const auto& low = command.option("low", 18, "the smallest block has 2^low bytes");
    const auto& high = command.option("high", 26, "the largest has less than 2^high");
    command.parse();

    const std::uint64_t todo = command.scaled(blocks);
    std::vector<std::uint64_t> most(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        std::vector<Block> held(bench::share(places, index, command.threads()) + 1);
        std::uint64_t live = 0;
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            Block& block = held[random.below(held.size())];
            live -= block.size;
            block.release();
            block.allocate(random.size(static_cast<unsigned>(low), static_cast<unsigned>(high)) & ~std::uint64_t{7},
                           random.next());
            live += block.size;
            if (live > most[index]) most[index] = live;
        }
        bench::PageList pages(command.pages());
        for (const Block& block : held) pages.add(block.bytes, block.size);
        pages.count();
        for (Block& block : held) block.release();
    });
    std::uint64_t requested = 0;
    for (const std::uint64_t peak : most) requested += peak;
    return command.report({.operations = todo, .seconds = seconds, .requested_bytes = requested});
}

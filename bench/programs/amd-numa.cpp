// Each thread allocates a block of 2^(6 + random % 19) bytes, reads and writes every 64th byte of it
// ten times over, and frees it: 5,000 times a thread in the original, here shared out.
#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& blocks = command.option("blocks", 5'000, "blocks at scale 1, of all threads");
    const auto& passes = command.option("passes", 10, "passes over a block");
    command.parse();

    constexpr std::uint64_t stride = 64;
    const std::uint64_t todo = command.scaled(blocks);
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        bench::PageList pages(command.pages());
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            const std::uint64_t size = std::uint64_t{1} << (6 + random.below(19));
            auto* const block = static_cast<volatile unsigned char*>(bench::take(size));
            for (std::uint64_t at = 0; at < size; at += stride) block[at] = static_cast<unsigned char>(at / stride);
            for (std::uint64_t pass = 0; pass < passes; ++pass) {
                for (std::uint64_t at = 0; at < size; at += stride)
                    block[at] = static_cast<unsigned char>(block[at] + 1);
            }
            for (std::uint64_t at = 0; at < size; at += stride) {
                if (block[at] != ((at / stride + passes) & 0xff))
                    bench::fail("byte %llu of a block was overwritten", static_cast<unsigned long long>(at));
            }
            if (i + 1 == mine) pages.add(const_cast<unsigned char*>(block), size);
            pages.count();
            std::free(const_cast<unsigned char*>(block));
        }
    });
    return command.report({.operations = todo, .seconds = seconds});
}

// posix_memalign, aligned_alloc and aligned new, from 16 bytes to 64 KiB, as numerical programs use
// them: cache lines and vectors mostly, pages now and then.
#include <new>
#include <vector>

#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

struct Aligned : bench::Object {
    std::size_t alignment = 0;
    bool from_new = false;

    void drop() {
        if (memory == nullptr) return;
        check();
        if (from_new) {
            ::operator delete(memory, bytes, std::align_val_t{alignment});
        } else {
            std::free(memory);
        }
        memory = nullptr;
    }
    void make(std::size_t size, std::size_t aligned_to, std::uint64_t way) {
        alignment = aligned_to;
        bytes = (size + alignment - 1) / alignment * alignment;
        from_new = way == 0;
        if (way == 0) {
            memory = bench::checked(::operator new(bytes, std::align_val_t{alignment}), bytes);
        } else if (way == 1) {
            memory = std::aligned_alloc(alignment, bytes);
        } else if (posix_memalign(&memory, alignment, bytes) != 0) {
            memory = nullptr;
        }
        if (memory == nullptr) bench::fail("no memory for %zu bytes", bytes);
        if (reinterpret_cast<std::uintptr_t>(memory) % alignment != 0)
            bench::fail("%p is not aligned to %zu", memory, alignment);
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& objects = command.option("objects", 6'000'000, "objects at scale 1, of all threads");
    const auto& places = command.option("places", 20'000, "objects that live at once, of all threads");
    command.parse();

    const std::uint64_t todo = command.scaled(objects);
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        std::vector<Aligned> held(bench::share(places, index, command.threads()) + 1);
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            Aligned& object = held[random.below(held.size())];
            object.drop();
            // 16 to 128 mostly; one in 128 from 256 to 64 KiB.
            const std::size_t alignment = std::size_t{1}
                                          << (random.below(128) == 0 ? random.between(8, 16) : random.between(4, 7));
            object.make(random.size(4, 11), alignment, random.below(3));
            object.tag = random.next();
            bench::stamp(object.memory, object.bytes, object.tag);
        }
        bench::PageList pages(command.pages());
        for (const Aligned& object : held) {
            if (object.memory != nullptr) pages.add(object.memory, object.bytes);
        }
        pages.count();
        for (Aligned& object : held) object.drop();
    });
    return command.report({.operations = 2 * todo, .seconds = seconds});
}

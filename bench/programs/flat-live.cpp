// Does malloc cost more in a large heap? The same replacements of the same small set of objects are
// timed beside 16 MiB of live objects, then beside ever more. A tenth of the live ones have been freed
// in between, so that the heap is full of holes.
#include <vector>

#include "support/churn.h"
#include "support/cpu_time.h"
#include "support/threads.h"

namespace {

// One thread's resting objects: a chain, so that the program needs no memory beside them.
class Resting {
public:
    Resting(std::uint64_t seed, unsigned thread) : random_(seed, thread) {}
    ~Resting() {
        while (last_ != nullptr) {
            Link* const gone = last_;
            last_ = gone->before;
            if (gone->mark != (reinterpret_cast<std::uintptr_t>(gone) ^ gone->bytes))
                bench::fail("an object at rest was overwritten");
            std::free(gone);
        }
    }
    void add_to(bench::PageList& pages) const {
        for (const Link* link = last_; link != nullptr; link = link->before) pages.add(link, link->bytes);
    }
    void grow_to(std::uint64_t bytes) {
        std::vector<void*> holes;
        while (bytes_ < bytes) {
            const std::size_t size = random_.between(64, 2'000);
            auto* const object = static_cast<Link*>(bench::take(size));
            if (random_.below(10) == 0) {
                holes.push_back(object);
                continue;
            }
            *object = {last_, size, reinterpret_cast<std::uintptr_t>(object) ^ size};
            last_ = object;
            bytes_ += size;
        }
        for (void* hole : holes) std::free(hole);
    }

private:
    struct Link {
        Link* before;
        std::size_t bytes;
        std::uintptr_t mark;
    };
    bench::Random random_;
    Link* last_ = nullptr;
    std::uint64_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& largest =
        command.option("live", std::uint64_t{1} << 30, "bytes that rest in the end, of all threads: 16M to 16G");
    const auto& replacements =
        command.option("replacements", 4'000'000, "replacements beside each amount, at scale 1, of all threads");
    command.parse();

    constexpr std::uint64_t least = std::uint64_t{16} << 20;
    const std::uint64_t todo = command.scaled(replacements);
    const unsigned threads = command.threads();
    bench::Barrier gate(threads);
    double first = 0, last = 0, start = 0, busy = 0;
    std::uint64_t amounts = 0;
    bench::run_threads(threads, [&](unsigned index) {
        Resting resting(command.seed(), index);
        for (std::uint64_t live = least;; live = live * 8 < largest ? live * 8 : largest) {
            resting.grow_to(live / threads);
            bench::Churn churn(5'000, bench::Random(command.seed(), index), 16, 1'000);
            churn.replace(50'000);
            gate.wait();
            const double wall = bench::now();
            if (index == 0) start = bench::cpu_time();
            gate.wait();
            churn.replace(bench::share(todo, index, threads));
            gate.wait();
            if (index == 0) {
                last = (bench::cpu_time() - start) * 1e9 / static_cast<double>(2 * todo);
                if (live == least) first = last;
                busy += bench::now() - wall;
                ++amounts;
            }
            if (live < largest) continue;
            bench::PageList pages(command.pages());
            resting.add_to(pages);
            churn.add_to(pages);
            pages.count();
            break;
        }
    });
    command.figure("ns_per_operation_at_16_MiB", first);
    command.figure("ns_per_operation_at_most", last);
    command.figure("ratio", last / first);
    return command.report({.operations = 2 * todo * amounts, .seconds = busy, .requested_bytes = largest});
}

// Fragmentation by patch size, JArena's table 1: what part of the pages that a program's patches lie on
// holds no patch. The paper computes it for patches that are padded to pages, which is what placing by
// pages costs; psm_alloc is measured here.
//
//     NUMALLOC_THP=on LD_PRELOAD=libnumalloc.so fragmentation [--megabytes 64] [--bound PERCENT]
//
// Each size gets a process of its own, which allocates so many megabytes of patches and writes them.
//   4K, 64K, 2M  the pages of that size that patches lie on, by address
//   resident     what the process grew by: with huge pages, whole ones. Stacks and metadata included.
// With --bound the status is 1 if any figure of ours is above it.
#include <getopt.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>

#include "memory.h"

namespace {

struct Size {
    const char* patch;
    std::size_t values;
};
constexpr Size sizes[] = {{"10x10", 100},       {"20x20", 400},         {"50x50", 2500},     {"65x65", 65 * 65},
                          {"100x100", 10000},   {"111x111", 111 * 111}, {"200x200", 40000},  {"5x5x5", 125},
                          {"10x10x10", 1000},   {"20x20x20", 8000},     {"30x30x30", 27000}, {"40x40x40", 64000},
                          {"50x50x50", 125000}, {"60x60x60", 216000}};
constexpr std::size_t pages[] = {4096, 64 << 10, 2 << 20};

struct Rates {
    double by_page[3];
    double resident;
};

std::size_t resident_bytes() {
    FILE* file = std::fopen("/proc/self/statm", "r");
    unsigned long all = 0;
    unsigned long resident = 0;
    if (file == nullptr || std::fscanf(file, "%lu %lu", &all, &resident) != 2)
        jarena::die("cannot read /proc/self/statm");
    std::fclose(file);
    return resident * 4096;
}

double lost(double used, double held) { return 100 * (1 - used / held); }

Rates measure(const jarena::Memory& memory, const Size& size, std::size_t total) {
    const std::size_t bytes = size.values * sizeof(double);
    const std::size_t count = std::max<std::size_t>(1, total / bytes);
    const auto used = static_cast<double>(count * bytes);
    std::vector<std::uintptr_t> blocks(count);
    std::vector<std::uintptr_t> numbers;
    numbers.reserve(count * (bytes / 4096 + 2));
    const std::size_t before = resident_bytes();
    for (std::uintptr_t& block : blocks) {
        double* const p = memory.allocate(size.values, 0);
        std::memset(p, 1, bytes);
        block = reinterpret_cast<std::uintptr_t>(p);
    }
    Rates rates{};
    rates.resident = lost(used, static_cast<double>(resident_bytes() - before));
    for (std::size_t k = 0; k < 3; ++k) {
        numbers.clear();
        for (std::uintptr_t block : blocks)
            for (std::uintptr_t page = block / pages[k]; page <= (block + bytes - 1) / pages[k]; ++page)
                numbers.push_back(page);
        std::sort(numbers.begin(), numbers.end());
        const auto end = std::unique(numbers.begin(), numbers.end());
        rates.by_page[k] = lost(used, static_cast<double>(end - numbers.begin()) * static_cast<double>(pages[k]));
    }
    return rates;
}

Rates in_child(const char* memory_name, const Size& size, std::size_t total) {
    int ends[2];
    if (pipe(ends) != 0) jarena::die("no pipe");
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const jarena::Memory memory(memory_name);
        memory.join(0);
        const Rates rates = measure(memory, size, total);
        _exit(write(ends[1], &rates, sizeof rates) == sizeof rates ? 0 : 1);
    }
    Rates rates{};
    int status = 0;
    close(ends[1]);
    const bool got = read(ends[0], &rates, sizeof rates) == sizeof rates;
    close(ends[0]);
    if (waitpid(child, &status, 0) < 0 || status != 0 || !got) jarena::die("a process that measures has failed");
    return rates;
}

// The paper's: each patch alone on its pages.
double padded(std::size_t bytes, std::size_t page) {
    return lost(static_cast<double>(bytes), static_cast<double>((bytes + page - 1) / page * page));
}

}  // namespace

int main(int count, char** words) {
    static constexpr char accepted[] =
        "accepted: --memory psm|owner|wrong|best, --megabytes N, --scale S (of the megabytes), --bound PERCENT, "
        "--threads 1, --seed K, --report-pages";
    const char* memory = "best";
    double megabytes = 64;
    double scale = 1;
    double bound = 100;
    const option options[] = {
        {"memory", required_argument, nullptr, 'm'},  {"megabytes", required_argument, nullptr, 'M'},
        {"bound", required_argument, nullptr, 'b'},   {"scale", required_argument, nullptr, 'S'},
        {"threads", required_argument, nullptr, 't'}, {"seed", required_argument, nullptr, 'i'},
        {"report-pages", no_argument, nullptr, 'i'},  {nullptr, 0, nullptr, 0}};
    opterr = 0;
    for (int c; (c = getopt_long(count, words, "", options, nullptr)) != -1;) {
        if (c == 'm') memory = optarg;
        else if (c == 'M' && std::atof(optarg) >= 1) megabytes = std::atof(optarg);
        else if (c == 'b' && std::atof(optarg) > 0) bound = std::atof(optarg);
        else if (c == 'S' && std::atof(optarg) > 0) scale = std::atof(optarg);
        else if ((c != 't' || std::atoi(optarg) != 1) && c != 'i') jarena::die(accepted);
    }
    if (optind != count) jarena::die(accepted);

    memory = jarena::Memory(memory).name();
    const double begin = jarena::seconds();
    double worst = 0;
    std::printf(
        "| patch of doubles | bytes | padded 4K | 64K | 2M | %s 4K | 64K | 2M | resident "
        "|\n|---|---|---|---|---|---|---|---|---|\n",
        memory);
    for (const Size& size : sizes) {
        const Rates r = in_child(memory, size, static_cast<std::size_t>(megabytes * scale * (1 << 20)));
        const std::size_t bytes = size.values * sizeof(double);
        std::printf("| %s | %zu | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", size.patch,
                    bytes, padded(bytes, pages[0]), padded(bytes, pages[1]), padded(bytes, pages[2]), r.by_page[0],
                    r.by_page[1], r.by_page[2], r.resident);
        worst = std::max({worst, r.by_page[0], r.by_page[1], r.by_page[2], r.resident});
    }
    std::printf(
        "{\"program\": \"fragmentation\", \"memory\": \"%s\", \"threads\": 1, \"seconds\": %.6f, \"worst_percent\": "
        "%.2f, \"check\": \"%s\"}\n",
        memory, jarena::seconds() - begin, worst, worst <= bound ? "ok" : "above the bound");
    return worst <= bound ? 0 : 1;
}

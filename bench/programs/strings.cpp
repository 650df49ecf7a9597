// Text as scripts handle it: lines are built up, split into words, the words changed, sorted and joined.
#include <algorithm>
#include <string>
#include <vector>

#include "support/command.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> words;
    for (std::size_t from = 0; from < line.size();) {
        const std::size_t to = std::min(line.find(' ', from), line.size());
        words.push_back(line.substr(from, to - from));
        from = to + 1;
    }
    return words;
}

std::string join(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) {
        if (!line.empty()) line += ' ';
        line += word;
    }
    return line;
}

// Changes when any letter does.
std::uint64_t sum_of(const std::string& line) {
    std::uint64_t sum = 0;
    for (const char c : line) sum += static_cast<unsigned char>(c);
    return sum;
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& lines = command.option("lines", 200'000, "lines at scale 1, of all threads");
    const auto& words = command.option("words", 40, "words of a line, at most");
    const auto& kept = command.option("kept", 1'000, "lines that a thread keeps");
    command.parse();

    const std::uint64_t todo = command.scaled(lines);
    std::vector<std::uint64_t> made(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        struct Line {
            std::string text;
            std::uint64_t sum = 0;
        };
        std::vector<Line> held(kept);
        const std::uint64_t mine = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < mine; ++i) {
            std::string line;
            const std::uint64_t count = random.between(1, words);
            std::uint64_t sum = 0;
            for (std::uint64_t w = 0; w < count; ++w) {
                std::string word(random.between(1, 60), static_cast<char>('a' + random.below(26)));
                sum += sum_of(word) + 2 * '-' + ' ';
                line = line.empty() ? word : line + " " + word;
            }
            std::vector<std::string> parts = split(line);
            for (std::string& part : parts) part.insert(part.size() / 2, "--");
            std::sort(parts.begin(), parts.end());
            Line& place = held[random.below(kept)];
            if (sum_of(place.text) != place.sum) bench::fail("a line of text was overwritten");
            place = {join(parts), sum - ' '};
            if (parts.size() != count || sum_of(place.text) != place.sum) bench::fail("a line of text is damaged");
            made[index] += 5 * count;
        }
        bench::PageList pages(command.pages());
        for (const Line& line : held) pages.add(line.text.data(), line.text.size());
        pages.count();
    });
    std::uint64_t operations = 0;
    for (const std::uint64_t count : made) operations += count;
    return command.report({.operations = operations, .seconds = seconds});
}

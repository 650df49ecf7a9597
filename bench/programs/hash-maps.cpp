// Hash maps from words to lists of numbers, an index as a search engine builds it: nodes, strings too
// long to lie within them, growing vectors, and bucket arrays that are made anew.
#include <string>
#include <unordered_map>
#include <vector>

#include "support/command.h"
#include "support/random.h"
#include "support/threads.h"

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& entries = command.option("entries", 2'500'000, "entries at scale 1, of all threads");
    const auto& words = command.option("words", 100'000, "different words, of all threads");
    const auto& documents = command.option("documents", 400'000, "entries after which a thread starts a new index");
    command.parse();

    const std::uint64_t todo = command.scaled(entries);
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        const std::uint64_t own_words = bench::share(words, index, command.threads()) + 1;
        std::uint64_t left = bench::share(todo, index, command.threads());
        while (left != 0) {
            const std::uint64_t mine = left < documents ? left : documents;
            left -= mine;
            std::unordered_map<std::string, std::vector<std::uint32_t>> map;
            std::uint64_t sum = 0;
            for (std::uint64_t i = 0; i < mine; ++i) {
                // Small numbers are the frequent words.
                const std::uint64_t word = random.below(random.below(own_words) + 1);
                std::string text = "the word of number ";
                text += std::to_string(bench::scatter(word) >> (word % 40));
                map[std::move(text)].push_back(static_cast<std::uint32_t>(i));
                sum += i;
            }
            for (const auto& [text, places] : map) {
                if (text.compare(0, 19, "the word of number ") != 0)
                    bench::fail("the word '%s' was overwritten", text.c_str());
                for (const std::uint32_t place : places) sum -= place;
            }
            if (sum != 0) bench::fail("an index has lost entries");
            if (left != 0) continue;
            bench::PageList pages(command.pages());
            for (const auto& entry : map) {
                pages.add(&entry, sizeof entry);
                pages.add(entry.first.data(), entry.first.size());
                pages.add(entry.second.data(), entry.second.size() * sizeof entry.second[0]);
            }
            pages.count();
        }
    });
    return command.report({.operations = todo, .seconds = seconds});
}

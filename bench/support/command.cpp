#include "support/command.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace bench {

namespace {

// A whole number with an optional K, M or G; false for anything else.
bool whole_number(const char* text, std::uint64_t& value) {
    if (*text < '0' || *text > '9') return false;
    char* end;
    value = std::strtoull(text, &end, 10);
    const char* const suffixes = "KMG";
    const char* const suffix = *end == '\0' ? nullptr : std::strchr(suffixes, *end);
    if (suffix != nullptr) {
        value <<= 10 * (suffix - suffixes + 1);
        ++end;
    }
    return *end == '\0';
}

// Of what the programs use only memory that runs out throws.
[[noreturn]] void end_of_memory() { fail("no memory for a string, a container or a node"); }

}  // namespace

const std::uint64_t& Command::declare(const Option& option) {
    if (option_count_ == max_options) fail("more than %d options", max_options);
    options_[option_count_] = option;
    return options_[option_count_++].value;
}

const std::uint64_t& Command::option(const char* name, std::uint64_t standard, const char* meaning) {
    return declare({name, meaning, standard, 0, nullptr});
}

const std::uint64_t& Command::option(const char* name, std::uint64_t standard, std::uint64_t papers,
                                     const char* meaning) {
    return declare({name, meaning, standard, papers, nullptr});
}

const std::uint64_t& Command::choice(const char* name, const char* words, const char* meaning) {
    return declare({name, meaning, 0, 0, words});
}

bool Command::has_paper() const {
    for (int i = 0; i < option_count_; ++i) {
        if (options_[i].papers != 0) return true;
    }
    return false;
}

void Command::parse() {
    std::set_terminate(end_of_memory);
    for (int i = 1; i < argc_; ++i) {
        const char* const word = argv_[i];
        if (std::strcmp(word, "--help") == 0) help();
        if (std::strcmp(word, "--report-pages") == 0) {
            pages_.want();
            continue;
        }
        if (has_paper() && std::strcmp(word, "--paper") == 0) {
            for (Option& option : options_) {
                if (option.papers != 0) option.value = option.papers;
            }
            continue;
        }
        if (std::strncmp(word, "--", 2) != 0) reject("unexpected word", word);
        const char* const equals = std::strchr(word, '=');
        if (equals == nullptr && i + 1 == argc_) reject("no value or no such option", word);
        char name[64];
        const std::size_t length =
            equals == nullptr ? std::strlen(word) - 2 : static_cast<std::size_t>(equals - word) - 2;
        if (length >= sizeof name) reject("no such option", word);
        std::memcpy(name, word + 2, length);
        name[length] = '\0';
        assign(name, equals == nullptr ? argv_[++i] : equals + 1);
    }
}

void Command::assign(const char* name, const char* text) {
    std::uint64_t number = 0;
    if (std::strcmp(name, "scale") == 0) {
        char* end;
        scale_ = std::strtod(text, &end);
        if (end == text || *end != '\0' || !(scale_ > 0) || scale_ > 1e6)
            reject("--scale is a number above 0, not", text);
        return;
    }
    const bool is_number = whole_number(text, number);
    if (std::strcmp(name, "threads") == 0) {
        if (!is_number || number == 0 || number > 100'000) reject("--threads is 1 to 100000, not", text);
        threads_ = static_cast<unsigned>(number);
        return;
    }
    if (std::strcmp(name, "seed") == 0) {
        if (!is_number) reject("--seed is a whole number, not", text);
        seed_ = number;
        return;
    }
    for (int i = 0; i < option_count_; ++i) {
        if (std::strcmp(name, options_[i].name) != 0) continue;
        if (options_[i].words != nullptr) return choose(options_[i], text);
        if (!is_number || number == 0) reject("not a whole number above 0:", text);
        options_[i].value = number;
        return;
    }
    reject("no such option", name);
}

void Command::choose(Option& option, const char* text) const {
    const std::size_t length = std::strlen(text);
    option.value = 0;
    for (const char* word = option.words;; ++option.value) {
        const std::size_t end = std::strcspn(word, "|");
        if (end == length && std::strncmp(word, text, length) == 0) return;
        if (word[end] == '\0') break;
        word += end + 1;
    }
    std::fprintf(stderr, "%s: --%s: '%s' is unknown; accepted: %s\n", program_name, option.name, text, option.words);
    std::exit(2);
}

std::uint64_t Command::scaled(std::uint64_t count) const {
    const double wanted = static_cast<double>(count) * scale_;
    return wanted < 1 ? 1 : static_cast<std::uint64_t>(wanted);
}

void Command::help() const {
    std::printf("%s: %s\nFrom: %s.\n\n", program_name, program_description, program_source);
    std::printf("usage: %s [--threads N] [--scale S] [--seed K] [--report-pages] [own options]\n\n", program_name);
    std::printf("  --threads N        worker threads (%u)\n", standard_threads);
    std::printf("  --scale S          S times as much work, of the same sizes (1)\n");
    std::printf("  --seed K           seed of the random numbers (1)\n");
    std::printf("  --report-pages     count local and remote pages with move_pages, where it is allowed\n");
    if (has_paper())
        std::printf(
            "  --paper            the sizes of the source: what the numbers in brackets then are shows --paper "
            "--help\n");
    for (int i = 0; i < option_count_; ++i) {
        if (options_[i].words != nullptr) {
            std::printf("  --%-16s %s (%s)\n", options_[i].name, options_[i].meaning, options_[i].words);
            continue;
        }
        std::printf("  --%-16s %s (%llu)\n", options_[i].name, options_[i].meaning,
                    static_cast<unsigned long long>(options_[i].value));
    }
    std::printf("\nThe last line is a JSON object. Status 1: the program's data was corrupted or memory ran out.\n");
    std::exit(0);
}

void Command::reject(const char* what, const char* word) const {
    std::fprintf(stderr, "%s: %s %s; accepted: --threads --scale --seed --report-pages --help", program_name, what,
                 word);
    if (has_paper()) std::fprintf(stderr, " --paper");
    for (int i = 0; i < option_count_; ++i) std::fprintf(stderr, " --%s", options_[i].name);
    std::fputc('\n', stderr);
    std::exit(2);
}

void Command::figure(const char* name, double value) {
    if (figure_count_ == max_options) fail("more than %d figures", max_options);
    figures_[figure_count_++] = {name, value};
}

int Command::report(const Result& result) const {
    const double rate = result.seconds > 0 ? static_cast<double>(result.operations) / result.seconds : 0;
    std::printf(
        "{\"program\": \"%s\", \"threads\": %u, \"operations\": %llu, \"seconds\": %.6f, \"ops_per_second\": %.1f",
        program_name, threads_, static_cast<unsigned long long>(result.operations), result.seconds, rate);
    if (result.requested_bytes != 0) {
        std::printf(", \"requested_bytes\": %llu", static_cast<unsigned long long>(result.requested_bytes));
    }
    for (int i = 0; i < figure_count_; ++i) std::printf(", \"%s\": %.4f", figures_[i].name, figures_[i].value);
    pages_.print();
    std::printf(", \"check\": \"ok\"}\n");
    return std::fflush(stdout) == 0 ? 0 : 1;
}

void fail(const char* format, ...) {
    // One write, so that the words of two threads do not mix.
    char text[512];
    int length = std::snprintf(text, sizeof text, "%s: ", program_name);
    va_list arguments;
    va_start(arguments, format);
    length += std::vsnprintf(text + length, sizeof text - static_cast<std::size_t>(length) - 1, format, arguments);
    va_end(arguments);
    if (length > static_cast<int>(sizeof text) - 2) length = static_cast<int>(sizeof text) - 2;
    text[length++] = '\n';
    if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) _exit(1);
    _exit(1);
}

}  // namespace bench

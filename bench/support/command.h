#pragma once

#include <cstdint>

#include "support/pages.h"

namespace bench {

// The program's own row in programs.json, compiled in by CMake.
extern const char* const program_name;
extern const char* const program_description;
extern const char* const program_source;
extern const unsigned standard_threads;

/// What a program prints at its end. Bytes are bytes, times are seconds.
struct Result {
    std::uint64_t operations = 0;
    double seconds = 0;
    std::uint64_t requested_bytes = 0;  ///< most bytes that lived at once; 0: not known, not printed
};

/// A size of the program's source that --paper sets, where it depends on the number of threads.
struct Papers {
    enum Of { all_threads, each_thread, shared_out };
    std::uint64_t number;
    Of of;
};

/// The command line of a benchmark program: the options that all have, and the program's own.
/// Takes no memory from malloc. Not thread-safe before parse() has returned; read-only afterwards.
class Command {
public:
    Command(int argc, char** argv) : argc_(argc), argv_(argv), threads_(standard_threads) {}

    /// Declares --NAME, a whole number (K, M and G multiply by 1024). The value is there after parse().
    const std::uint64_t& option(const char* name, std::uint64_t standard, const char* meaning);

    /// The same for a size of which the program's source has another: --paper, accepted where there is one, sets it.
    const std::uint64_t& option(const char* name, std::uint64_t standard, std::uint64_t papers, const char* meaning);
    const std::uint64_t& option(const char* name, std::uint64_t standard, Papers papers, const char* meaning);

    /// Declares --NAME, one of the words that "a|b|c" lists. The value is the word's place in it, 0 without the option.
    const std::uint64_t& choice(const char* name, const char* words, const char* meaning);

    /// Reads the command line. Ends the program after --help (status 0) and on a bad word (status 2).
    void parse();

    unsigned threads() const { return threads_; }
    std::uint64_t seed() const { return seed_; }

    /// `count` times --scale, at least 1: how much work is done, not how large it is.
    std::uint64_t scaled(std::uint64_t count) const;

    Pages& pages() { return pages_; }

    /// Another figure for the line of JSON. At most 8; the name must be a literal.
    void figure(const char* name, double value);

    /// Prints the line of JSON. Returns main()'s value.
    int report(const Result& result) const;

private:
    struct Option {
        const char* name;
        const char* meaning;
        std::uint64_t value;
        Papers papers;      // 0: there is none
        const char* words;  // of a choice; else nullptr
        bool takes_papers;  // --paper came, and no other value after it
    };
    struct Figure {
        const char* name;
        double value;
    };
    static constexpr int max_options = 8;

    const std::uint64_t& declare(const Option& option);
    bool has_paper() const;
    [[noreturn]] void help() const;
    [[noreturn]] void reject(const char* what, const char* word) const;
    void assign(const char* name, const char* text);
    void choose(Option& option, const char* text) const;
    void set_papers();

    int argc_;
    char** argv_;
    unsigned threads_;
    double scale_ = 1;
    std::uint64_t seed_ = 1;
    Option options_[max_options];
    int option_count_ = 0;
    Figure figures_[max_options];
    int figure_count_ = 0;
    Pages pages_;
};

/// Says on stderr what is wrong with the program's data and ends it with status 1. Thread-safe.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace bench

#pragma once

#include <vector>

#include "support/letter.h"

namespace bench {

/// A set of objects of which a random one is replaced again and again. For one thread at a time.
class Churn {
public:
    Churn(std::size_t objects, Random random, std::size_t smallest, std::size_t largest)
        : letters_(objects), random_(random), smallest_(smallest), largest_(largest) {}
    Churn(Churn&&) = default;
    ~Churn() {
        for (void* letter : letters_) burn_letter(letter);
    }

    void add_to(PageList& pages) const {
        for (const void* letter : letters_) {
            if (letter != nullptr) pages.add(letter, read_letter(letter));
        }
    }

    void replace(std::uint64_t times) {
        for (std::uint64_t i = 0; i < times; ++i) {
            void*& letter = letters_[random_.below(letters_.size())];
            burn_letter(letter);
            letter = write_letter(random_.between(smallest_, largest_), static_cast<std::uint32_t>(i));
        }
    }

private:
    std::vector<void*> letters_;
    Random random_;
    std::size_t smallest_;
    std::size_t largest_;
};

}  // namespace bench

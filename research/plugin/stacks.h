// SPDX-License-Identifier: GPL-2.0-or-later
// Every so many lines that come from another node: where that was, with registers and the top of the stack, for
// somebody else to unwind. Which ones is a matter of counting, so that they are the same again.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace scope {

struct StackSample {
    static constexpr unsigned REGISTERS = 7;  // rbx, rbp, rsp, r12 to r15

    uint64_t address;  // of the instruction
    bool transfer;     // of another cache, not of memory
    std::array<uint64_t, REGISTERS> registers;
    std::vector<uint8_t> stack;  // from rsp upwards
};

class StackSamples {
public:
    static constexpr size_t MOST = 1024;
    static constexpr size_t BYTES = 8192;  // of a stack

    // One line more; whether it is to be sampled.
    bool next() { return lines_++ % every_ == 0; }

    // Where there are too many, half of them go, and half as many come from then on.
    void add(StackSample&& sample) {
        samples_.push_back(std::move(sample));
        if (samples_.size() < MOST) return;
        for (size_t kept = 0; kept < MOST / 2; ++kept) samples_[kept] = std::move(samples_[2 * kept]);
        samples_.resize(MOST / 2);
        every_ *= 2;
    }

    void clear() { *this = {}; }
    uint64_t every() const { return every_; }
    const std::vector<StackSample>& all() const { return samples_; }

private:
    uint64_t every_ = 1, lines_ = 0;
    std::vector<StackSample> samples_;
};

}  // namespace scope

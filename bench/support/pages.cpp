#include "support/pages.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace bench {

namespace {
constexpr unsigned page_shift = 12;
}

void PageList::add(const void* object, std::size_t bytes) {
    if (!pages_.wanted() || bytes == 0) return;
    const auto first = reinterpret_cast<std::uintptr_t>(object) >> page_shift;
    const auto last = (reinterpret_cast<std::uintptr_t>(object) + bytes - 1) >> page_shift;
    for (auto number = first; number <= last; ++number) {
        if (numbers_.empty() || numbers_.back() != number) numbers_.push_back(number);
    }
}

void PageList::count() {
    if (!pages_.wanted()) return;
    std::sort(numbers_.begin(), numbers_.end());
    numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
    unsigned node = 0;
    if (syscall(SYS_getcpu, nullptr, &node, nullptr) != 0) pages_.refused_ = true;
    constexpr std::size_t chunk = 512;
    for (std::size_t from = 0; from < numbers_.size() && !pages_.refused_; from += chunk) {
        const std::size_t count = std::min(chunk, numbers_.size() - from);
        const void* addresses[chunk];
        int status[chunk];
        for (std::size_t i = 0; i < count; ++i)
            addresses[i] = reinterpret_cast<const void*>(numbers_[from + i] << page_shift);
        if (syscall(SYS_move_pages, 0, count, addresses, nullptr, status, 0) != 0) {
            pages_.refused_ = true;
            return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            // Negative: never touched, or given back.
            if (status[i] < 0 || static_cast<unsigned>(status[i]) >= Pages::max_nodes) continue;
            const auto on = static_cast<unsigned>(status[i]);
            pages_.on_node_[on] += 1;
            (on == node ? pages_.local_ : pages_.remote_) += 1;
        }
    }
    numbers_.clear();
}

void Pages::print() const {
    if (!wanted_ || refused_) return;
    std::printf(", \"local_pages\": %llu, \"remote_pages\": %llu, \"pages_per_node\": [",
                static_cast<unsigned long long>(local_), static_cast<unsigned long long>(remote_));
    unsigned nodes = max_nodes;
    while (nodes > 1 && on_node_[nodes - 1] == 0) --nodes;
    for (unsigned n = 0; n < nodes; ++n)
        std::printf("%s%llu", n == 0 ? "" : ", ", static_cast<unsigned long long>(on_node_[n]));
    std::printf("]");
}

}  // namespace bench

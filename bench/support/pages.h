#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// Where the pages of a program's objects lie: per node, and seen from the threads that use them.
class Pages {
public:
    void want() { wanted_ = true; }
    bool wanted() const { return wanted_; }

    /// The JSON members local_pages, remote_pages and pages_per_node; nothing where the kernel refused.
    void print() const;

private:
    friend class PageList;
    static constexpr unsigned max_nodes = 1024;

    bool wanted_ = false;
    std::atomic<bool> refused_{false};
    std::atomic<std::uint64_t> local_{0};
    std::atomic<std::uint64_t> remote_{0};
    std::atomic<std::uint64_t> on_node_[max_nodes] = {};
};

/// One thread's objects. A page that several of them share counts once. Does nothing unless wanted.
class PageList {
public:
    explicit PageList(Pages& pages) : pages_(pages) {}
    void add(const void* object, std::size_t bytes);

    /// Asks the kernel for all that were added; local is the node that the calling thread runs on.
    /// To be called outside the measured time. Thread-safe among different lists.
    void count();

private:
    Pages& pages_;
    std::vector<std::uintptr_t> numbers_;
};

}  // namespace bench

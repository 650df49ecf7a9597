// Where memory lies, page by page, by the kernel's own word.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace jarena {

struct Pages {
    std::uint64_t all = 0;
    std::uint64_t remote = 0;
    std::vector<std::uint64_t> on_node;
    bool known = true;  // false where the kernel refuses to say

    // The pages of a block that has been written, whose reader and writer is on `node`.
    void count(const void* block, std::size_t bytes, int node) {
        constexpr std::uintptr_t page = 4096;
        constexpr std::size_t chunk = 256;
        void* pages[chunk];
        int nodes[chunk];
        const auto start = reinterpret_cast<std::uintptr_t>(block);
        for (std::uintptr_t at = start & ~(page - 1); known && at < start + bytes;) {
            std::size_t n = 0;
            for (; n < chunk && at < start + bytes; at += page) pages[n++] = reinterpret_cast<void*>(at);
            if (syscall(SYS_move_pages, 0, n, pages, nullptr, nodes, 0) != 0) known = false;
            for (std::size_t i = 0; known && i < n; ++i) {
                if (nodes[i] < 0) {
                    known = false;
                    return;
                }
                const auto on = static_cast<std::size_t>(nodes[i]);
                if (on >= on_node.size()) on_node.resize(on + 1);
                ++on_node[on];
                remote += nodes[i] != node;
                ++all;
            }
        }
    }

    // As members of a line of JSON, with a comma behind; nothing where they are not known.
    void print() const {
        if (!known) return;
        std::printf("\"local_pages\": %llu, \"remote_pages\": %llu, \"pages_per_node\": [",
                    static_cast<unsigned long long>(all - remote), static_cast<unsigned long long>(remote));
        for (std::size_t n = 0; n < on_node.size(); ++n)
            std::printf("%s%llu", n == 0 ? "" : ", ", static_cast<unsigned long long>(on_node[n]));
        std::printf("], ");
    }
};

}  // namespace jarena

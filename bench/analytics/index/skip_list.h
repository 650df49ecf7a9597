// A skip list (Pugh, 1990), with which the study of allocators and placement for data analytics on NUMA machines
// compares: each row has a node, and a node is as long as chance made it high.
#pragma once

#include <cstdint>
#include <new>

#include "support/object.h"
#include "support/random.h"

namespace analytics {

/// Maps keys to rows. One thread may insert, or several find.
template <class Row>
class SkipList {
public:
    SkipList() = default;
    SkipList(const SkipList&) = delete;
    SkipList& operator=(const SkipList&) = delete;
    ~SkipList() {
        each_node([](void* node, std::size_t) { std::free(node); });
    }

    /// Visits each node with its bytes, without the links above the lowest.
    template <class Visit>
    void each_node(Visit visit) const {
        for (Node *node = first_[0], *next; node != nullptr; node = next) {
            next = *node->after(0);
            visit(static_cast<void*>(node), sizeof(Node) + sizeof(Node*));
        }
    }

    const Row* find(std::uint64_t key) const {
        Node* const* links = first_;
        for (unsigned level = height_; level-- != 0;) {
            while (links[level] != nullptr && links[level]->row->key < key) links = links[level]->after(0);
        }
        const Node* const node = links[0];
        return node != nullptr && node->row->key == key ? node->row : nullptr;
    }

    /// The row's key, row->key, must not be there yet.
    void insert(const Row* row) {
        // A quarter of the nodes of a level are in the next.
        unsigned height = 1;
        for (std::uint64_t bits = random_.next() >> 16; (bits & 3) == 0 && height < highest; bits >>= 2) ++height;
        if (height > height_) height_ = height;
        auto* const node = new (bench::take(sizeof(Node) + height * sizeof(Node*))) Node{row};
        Node** links = first_;
        for (unsigned level = height_; level-- != 0;) {
            while (links[level] != nullptr && links[level]->row->key < row->key) links = links[level]->after(0);
            if (level >= height) continue;
            *node->after(level) = links[level];
            links[level] = node;
        }
    }

private:
    static constexpr unsigned highest = 16;

    struct Node {
        const Row* row;
        // As many as the node is high, behind it.
        Node** after(unsigned level) { return reinterpret_cast<Node**>(this + 1) + level; }
    };

    Node* first_[highest] = {};
    unsigned height_ = 0;
    bench::Random random_{1};
};

}  // namespace analytics

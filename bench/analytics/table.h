// A hash table of one thread: chains of nodes, and an array of chains that is made anew, twice as long, when
// there are as many nodes as chains.
#pragma once

#include <cstdint>
#include <new>

#include "support/object.h"
#include "support/random.h"

namespace analytics {

template <class Value>
class Table {
public:
    struct Node {
        Node* next;
        std::uint64_t key;
        Value value;
    };

    Table() = default;
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    ~Table() {
        each([](Node* node) { release(node); });
        std::free(chains_);
    }

    /// The key's value, a new one if it has none.
    Value& at(std::uint64_t key) {
        if (count_ == length_) grow();
        Node** const chain = &chains_[place_of(key)];
        for (Node* node = *chain; node != nullptr; node = node->next) {
            if (node->key == key) return node->value;
        }
        *chain = new (bench::take(sizeof(Node))) Node{*chain, key, Value()};
        ++count_;
        return (*chain)->value;
    }

    /// Visits each node; the visitor may release it if the table is then emptied.
    template <class Visit>
    void each(Visit visit) {
        for (std::uint64_t i = 0; i < length_; ++i) {
            for (Node *node = chains_[i], *next; node != nullptr; node = next) {
                next = node->next;
                visit(node);
            }
        }
    }

    static void release(Node* node) {
        node->~Node();
        std::free(node);
    }

    /// Forgets the nodes, which the caller has released.
    void forget() {
        std::free(chains_);
        chains_ = nullptr;
        length_ = count_ = 0;
    }

private:
    std::uint64_t place_of(std::uint64_t key) const { return bench::scatter(key) & (length_ - 1); }

    void grow() {
        Table old;
        old.chains_ = chains_;
        old.length_ = length_;
        length_ = length_ == 0 ? 16 : 2 * length_;
        chains_ = static_cast<Node**>(bench::take(length_ * sizeof(Node*)));
        for (std::uint64_t i = 0; i < length_; ++i) chains_[i] = nullptr;
        old.each([this](Node* node) {
            Node** const chain = &chains_[place_of(node->key)];
            node->next = *chain;
            *chain = node;
        });
        old.length_ = 0;  // its nodes live on
    }

    Node** chains_ = nullptr;
    std::uint64_t length_ = 0;  // a power of two, or 0
    std::uint64_t count_ = 0;
};

}  // namespace analytics

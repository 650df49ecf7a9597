// A B+tree, with which the study of allocators and placement for data analytics on NUMA machines compares:
// nodes of one size, of which a full one is split into two. Keys are in the leaves and, as signposts, above.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>

#include "support/object.h"

namespace analytics {

/// Maps keys to values. A node holds `room` keys. One thread may insert, or several find.
template <class Key, class Value, unsigned room>
class BTree {
public:
    BTree() = default;
    BTree(const BTree&) = delete;
    BTree& operator=(const BTree&) = delete;
    ~BTree() {
        each_node([](void* node, std::size_t) { std::free(node); });
    }

    /// Where the key's value is, or nullptr.
    Value* find(Key key) const {
        Node* node = root_;
        if (node == nullptr) return nullptr;
        for (unsigned level = height_; level != 0; --level) node = inner(node)->children[inner(node)->after(key)];
        const unsigned place = node->before(key);
        return place < node->count && node->keys[place] == key ? &leaf(node)->values[place] : nullptr;
    }

    /// The key must not be there yet.
    void insert(Key key, Value value) {
        if (root_ == nullptr) root_ = new (bench::take(sizeof(Leaf))) Leaf;
        const Split split = insert(root_, height_, key, value);
        if (split.right == nullptr) return;
        auto* const above = new (bench::take(sizeof(Inner))) Inner;
        above->count = 1;
        above->keys[0] = split.first;
        above->children[0] = root_;
        above->children[1] = split.right;
        root_ = above;
        ++height_;
    }

    /// Visits each node with its bytes, after those below it.
    template <class Visit>
    void each_node(Visit visit) const {
        each_node(root_, height_, visit);
    }

    template <class Visit>
    void each(Visit visit) const {
        each(root_, height_, visit);
    }

private:
    struct Node {
        unsigned count = 0;
        Key keys[room];
        unsigned before(Key key) const {
            return static_cast<unsigned>(std::lower_bound(keys, keys + count, key) - keys);
        }
        unsigned after(Key key) const {
            return static_cast<unsigned>(std::upper_bound(keys, keys + count, key) - keys);
        }
    };
    struct Leaf : Node {
        Value values[room];
    };
    struct Inner : Node {
        Node* children[room + 1];
    };
    struct Split {
        Key first;    // of what is below `right`
        Node* right;  // nullptr: there was room
    };

    static Leaf* leaf(Node* node) { return static_cast<Leaf*>(node); }
    static Inner* inner(Node* node) { return static_cast<Inner*>(node); }

    template <class Item>
    static void open(Item* items, unsigned place, unsigned count) {
        std::move_backward(items + place, items + count, items + count + 1);
    }

    static Split insert(Node* node, unsigned level, Key key, Value value) {
        if (level == 0) return insert_in_leaf(leaf(node), key, value);
        const unsigned place = node->after(key);
        const Split below = insert(inner(node)->children[place], level - 1, key, value);
        return below.right == nullptr ? below : insert_in_inner(inner(node), place, below);
    }

    static Split insert_in_leaf(Leaf* node, Key key, Value value) {
        Leaf* right = nullptr;
        Leaf* target = node;
        if (node->count == room) {
            right = new (bench::take(sizeof(Leaf))) Leaf;
            constexpr unsigned kept = (room + 1) / 2;
            right->count = room - kept;
            std::copy(node->keys + kept, node->keys + room, right->keys);
            std::copy(node->values + kept, node->values + room, right->values);
            node->count = kept;
            if (key > node->keys[kept - 1]) target = right;
        }
        const unsigned place = target->before(key);
        open(target->keys, place, target->count);
        open(target->values, place, target->count);
        target->keys[place] = key;
        target->values[place] = value;
        ++target->count;
        return {right == nullptr ? key : right->keys[0], right};
    }

    // The key in the middle moves up.
    static Split insert_in_inner(Inner* node, unsigned place, Split below) {
        const auto put = [&](Inner* target, unsigned at) {
            open(target->keys, at, target->count);
            open(target->children, at + 1, target->count + 1);
            target->keys[at] = below.first;
            target->children[at + 1] = below.right;
            ++target->count;
        };
        if (node->count < room) {
            put(node, place);
            return {below.first, nullptr};
        }
        auto* const right = new (bench::take(sizeof(Inner))) Inner;
        constexpr unsigned kept = room / 2;
        const Key middle = node->keys[kept];
        right->count = room - kept - 1;
        std::copy(node->keys + kept + 1, node->keys + room, right->keys);
        std::copy(node->children + kept + 1, node->children + room + 1, right->children);
        node->count = kept;
        if (place <= kept) put(node, place);
        else put(right, place - kept - 1);
        return {middle, right};
    }

    template <class Visit>
    static void each(Node* node, unsigned level, Visit& visit) {
        if (node == nullptr) return;
        for (unsigned i = 0; i < node->count + (level == 0 ? 0 : 1); ++i) {
            if (level == 0) visit(node->keys[i], leaf(node)->values[i]);
            else each(inner(node)->children[i], level - 1, visit);
        }
    }

    template <class Visit>
    static void each_node(Node* node, unsigned level, Visit& visit) {
        if (node == nullptr) return;
        for (unsigned i = 0; level != 0 && i <= node->count; ++i) each_node(inner(node)->children[i], level - 1, visit);
        visit(static_cast<void*>(node), level == 0 ? sizeof(Leaf) : sizeof(Inner));
    }

    Node* root_ = nullptr;
    unsigned height_ = 0;  // levels above the leaves
};

/// The same as the other indexes.
template <class Row>
class BTreeOfRows {
public:
    void insert(const Row* row) { tree_.insert(row->key, row); }
    const Row* find(std::uint64_t key) const {
        const Row* const* const row = tree_.find(key);
        return row == nullptr ? nullptr : *row;
    }
    template <class Visit>
    void each_node(Visit visit) const {
        tree_.each_node(visit);
    }

private:
    BTree<std::uint64_t, const Row*, 16> tree_;
};

}  // namespace analytics

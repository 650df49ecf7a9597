// An adaptive radix tree (Leis, Kemper, Neumann, 2013), the index that the study of allocators and placement
// for data analytics on NUMA machines settles on: a node is as large as its children are many (4, 16, 48 or 256)
// and grows by a new allocation, the copy of the old one, and its free. Bytes that all keys below a node share
// are held in it; a child that leads to one row alone is that row.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

#include "support/object.h"

namespace analytics {

/// Maps keys to rows (which must be aligned to 2 bytes or more). One thread may insert, or several find.
template <class Row>
class Art {
public:
    Art() = default;
    Art(const Art&) = delete;
    Art& operator=(const Art&) = delete;
    ~Art() {
        each_node([](void* node, std::size_t) { std::free(node); });
    }

    /// Visits each node with its bytes, after those below it.
    template <class Visit>
    void each_node(Visit visit) const {
        each_node(root_, visit);
    }

    /// The row's key, row->key, must not be there yet.
    void insert(const Row* row) { insert(root_, row, 0); }

    const Row* find(std::uint64_t key) const {
        const void* at = root_;
        for (unsigned depth = 0; at != nullptr && !is_row(at); ++depth) {
            const auto* const node = static_cast<const Node*>(at);
            depth += node->shared;  // what these bytes are shows in the row
            if (depth >= bytes) return nullptr;
            void* const* const child = node->find(byte_of(key, depth));
            at = child == nullptr ? nullptr : *child;
        }
        return at != nullptr && row_of(at)->key == key ? row_of(at) : nullptr;
    }

private:
    static constexpr unsigned bytes = 8;
    static std::uint8_t byte_of(std::uint64_t key, unsigned depth) {
        return static_cast<std::uint8_t>(key >> (8 * (bytes - 1 - depth)));
    }

    static bool is_row(const void* at) { return (reinterpret_cast<std::uintptr_t>(at) & 1) != 0; }
    static const Row* row_of(const void* at) {
        return reinterpret_cast<const Row*>(reinterpret_cast<std::uintptr_t>(at) - 1);
    }
    static void* tagged(const Row* row) { return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(row) + 1); }

    struct Node {
        std::uint16_t room;
        std::uint16_t count = 0;
        std::uint8_t shared = 0;  // bytes of the prefix
        std::uint8_t prefix[bytes];

        explicit Node(std::uint16_t size) : room(size) {}
        void* const* find(std::uint8_t byte) const;
        void** find(std::uint8_t byte) { return const_cast<void**>(static_cast<const Node*>(this)->find(byte)); }
        void add(std::uint8_t byte, void* child);
        template <class Visit>
        void each(Visit visit) const;
    };
    template <unsigned size>
    struct Listed : Node {  // 4 or 16: bytes and children in the order in which they came
        Listed() : Node(size) {}
        std::uint8_t keys[size];
        void* children[size];
    };
    struct Node48 : Node {
        Node48() : Node(48) { std::memset(place, 0xff, sizeof place); }
        std::uint8_t place[256];  // 255: none
        void* children[48];
    };
    struct Node256 : Node {
        Node256() : Node(256) { std::memset(children, 0, sizeof children); }
        void* children[256];
    };

    template <class Kind>
    static Node* make() {
        return new (bench::take(sizeof(Kind))) Kind;
    }
    static Node* larger_than(const Node& old);
    template <class Visit>
    static void each_node(void* at, Visit& visit);
    static void insert(void*& at, const Row* row, unsigned depth);

    void* root_ = nullptr;
};

template <class Row>
void* const* Art<Row>::Node::find(std::uint8_t byte) const {
    const auto listed = [&](const auto& node) -> void* const* {
        for (unsigned i = 0; i < count; ++i) {
            if (node.keys[i] == byte) return &node.children[i];
        }
        return nullptr;
    };
    switch (room) {
        case 4: return listed(static_cast<const Listed<4>&>(*this));
        case 16: return listed(static_cast<const Listed<16>&>(*this));
        case 48: {
            const auto& node = static_cast<const Node48&>(*this);
            return node.place[byte] == 0xff ? nullptr : &node.children[node.place[byte]];
        }
        default: {
            void* const* const child = &static_cast<const Node256&>(*this).children[byte];
            return *child == nullptr ? nullptr : child;
        }
    }
}

// There must be room.
template <class Row>
void Art<Row>::Node::add(std::uint8_t byte, void* child) {
    const auto listed = [&](auto& node) {
        node.keys[count] = byte;
        node.children[count] = child;
    };
    switch (room) {
        case 4: listed(static_cast<Listed<4>&>(*this)); break;
        case 16: listed(static_cast<Listed<16>&>(*this)); break;
        case 48: {
            auto& node = static_cast<Node48&>(*this);
            node.place[byte] = static_cast<std::uint8_t>(count);
            node.children[count] = child;
            break;
        }
        default: static_cast<Node256&>(*this).children[byte] = child;
    }
    ++count;
}

template <class Row>
template <class Visit>
void Art<Row>::Node::each(Visit visit) const {
    const auto listed = [&](const auto& node) {
        for (unsigned i = 0; i < count; ++i) visit(node.keys[i], node.children[i]);
    };
    if (room == 4) return listed(static_cast<const Listed<4>&>(*this));
    if (room == 16) return listed(static_cast<const Listed<16>&>(*this));
    for (unsigned byte = 0; byte < 256; ++byte) {
        void* const* const child = find(static_cast<std::uint8_t>(byte));
        if (child != nullptr) visit(static_cast<std::uint8_t>(byte), *child);
    }
}

template <class Row>
typename Art<Row>::Node* Art<Row>::larger_than(const Node& old) {
    Node* const node = old.room == 4 ? make<Listed<16>>() : old.room == 16 ? make<Node48>() : make<Node256>();
    node->shared = old.shared;
    std::memcpy(node->prefix, old.prefix, sizeof node->prefix);
    old.each([&](std::uint8_t byte, void* child) { node->add(byte, child); });
    return node;
}

template <class Row>
template <class Visit>
void Art<Row>::each_node(void* at, Visit& visit) {
    if (at == nullptr || is_row(at)) return;
    const auto* const node = static_cast<const Node*>(at);
    node->each([&](std::uint8_t, void* child) { each_node(child, visit); });
    visit(at, node->room == 4    ? sizeof(Listed<4>)
              : node->room == 16 ? sizeof(Listed<16>)
              : node->room == 48 ? sizeof(Node48)
                                 : sizeof(Node256));
}

template <class Row>
void Art<Row>::insert(void*& at, const Row* row, unsigned depth) {
    if (at == nullptr) {
        at = tagged(row);
        return;
    }
    const std::uint64_t key = row->key;
    // Where a node's bytes end to be those of the key, a node comes between.
    const auto split = [&](unsigned equal, std::uint8_t others_byte) {
        Node* const node = make<Listed<4>>();
        node->shared = static_cast<std::uint8_t>(equal);
        for (unsigned i = 0; i < equal; ++i) node->prefix[i] = byte_of(key, depth + i);
        node->add(others_byte, at);
        node->add(byte_of(key, depth + equal), tagged(row));
        at = node;
    };
    if (is_row(at)) {
        const std::uint64_t other = row_of(at)->key;
        unsigned equal = 0;
        while (byte_of(other, depth + equal) == byte_of(key, depth + equal)) {
            if (depth + ++equal == bytes)
                bench::fail("the tree has the key %llu twice", static_cast<unsigned long long>(key));
        }
        return split(equal, byte_of(other, depth + equal));
    }
    auto* node = static_cast<Node*>(at);
    unsigned equal = 0;
    while (equal < node->shared && node->prefix[equal] == byte_of(key, depth + equal)) ++equal;
    if (equal < node->shared) {
        const std::uint8_t others_byte = node->prefix[equal];
        node->shared = static_cast<std::uint8_t>(node->shared - equal - 1);
        std::memmove(node->prefix, node->prefix + equal + 1, node->shared);
        return split(equal, others_byte);
    }
    depth += node->shared;
    if (void** const child = node->find(byte_of(key, depth)); child != nullptr) return insert(*child, row, depth + 1);
    if (node->count == node->room) {
        at = larger_than(*node);
        std::free(node);
        node = static_cast<Node*>(at);
    }
    node->add(byte_of(key, depth), tagged(row));
}

}  // namespace analytics

// A trie of B+trees as Masstree is one (Mao, Kohler, Morris, 2012), an index of the study of allocators and
// placement for data analytics on NUMA machines: a layer is a B+tree with nodes of 15 over one slice of the key;
// rows whose keys share the slice move to a layer of their own. Slices are 2 bytes and not 8, since keys of 8 bytes
// would else have one layer; and the nodes have no versions, since nobody reads while one writes.
#pragma once

#include "analytics/index/btree.h"

namespace analytics {

/// Maps keys to rows (which must be aligned to 2 bytes or more). One thread may insert, or several find.
template <class Row>
class Trie {
public:
    Trie() = default;
    Trie(const Trie&) = delete;
    Trie& operator=(const Trie&) = delete;
    ~Trie() {
        each_layer(root_, [](Layer& layer) {
            layer.~Layer();
            std::free(&layer);
        });
    }

    /// Visits each node of each layer with its bytes.
    template <class Visit>
    void each_node(Visit visit) const {
        each_layer(root_, [&](Layer& layer) { layer.each_node(visit); });
        root_.each_node(visit);
    }

    const Row* find(std::uint64_t key) const {
        const Layer* layer = &root_;
        for (unsigned depth = 0; depth < slices; ++depth) {
            const Entry* const entry = layer->find(slice_of(key, depth));
            if (entry == nullptr) return nullptr;
            if (is_row(*entry)) return row_of(*entry)->key == key ? row_of(*entry) : nullptr;
            layer = layer_of(*entry);
        }
        return nullptr;
    }

    /// The row's key, row->key, must not be there yet.
    void insert(const Row* row) {
        Layer* layer = &root_;
        for (unsigned depth = 0; depth < slices; ++depth) {
            Entry* const entry = layer->find(slice_of(row->key, depth));
            if (entry == nullptr) return layer->insert(slice_of(row->key, depth), reinterpret_cast<Entry>(row) + 1);
            if (is_row(*entry) && depth + 1 < slices) {
                const Row* const other = row_of(*entry);
                auto* const deeper = new (bench::take(sizeof(Layer))) Layer;
                deeper->insert(slice_of(other->key, depth + 1), *entry);
                *entry = reinterpret_cast<Entry>(deeper);
            }
            layer = layer_of(*entry);
        }
        bench::fail("the trie has the key %llu twice", static_cast<unsigned long long>(row->key));
    }

private:
    static constexpr unsigned slices = 4;
    using Entry = std::uintptr_t;  // a layer, or a row's address + 1
    using Layer = BTree<std::uint16_t, Entry, 15>;

    static std::uint16_t slice_of(std::uint64_t key, unsigned depth) {
        return static_cast<std::uint16_t>(key >> (16 * (slices - 1 - depth)));
    }
    static bool is_row(Entry entry) { return (entry & 1) != 0; }
    static const Row* row_of(Entry entry) { return reinterpret_cast<const Row*>(entry - 1); }
    static Layer* layer_of(Entry entry) { return reinterpret_cast<Layer*>(entry); }

    // Those below it, each after its own.
    template <class Visit>
    static void each_layer(const Layer& layer, Visit visit) {
        layer.each([&](std::uint16_t, Entry entry) {
            if (is_row(entry)) return;
            each_layer(*layer_of(entry), visit);
            visit(*layer_of(entry));
        });
    }

    Layer root_;
};

}  // namespace analytics

// Blocks that lie where the call says, and where a thread's blocks lie.
#pragma once

#include <pthread.h>

#include <string>

#include "api/queries.h"
#include "model/operations.h"

namespace fuzz {

struct Placed {
    void* p = nullptr;
    std::size_t alignment = 16;
    bool zero = false;
    int node = -1;  // that it must be on
};

// nullptr only where the node, set or owner is none.
inline Placed allocate_elsewhere(Input& in, std::size_t size) {
    Placed result;
    void*& p = result.p;
    const std::size_t alignment = model::draw_alignment(in);
    const int node = draw_node(in);
    const int owner = static_cast<int>(in.below(8));
    bool served = true;
    const std::size_t way = in.below(13);
    if (way <= 3) served = is_node(result.node = node);
    if (way >= 7 && way <= 9) served = psm_owner_node(owner) >= 0;
    result.zero = way == 1 || way == 5 || way == 8;
    if (way == 2 || way == 6 || way == 9) result.alignment = alignment;
    switch (way) {
        case 0: p = numalloc_malloc_on_node(size, node); break;
        case 1: p = numalloc_calloc_on_node(1, size, node); break;
        case 2: p = numalloc_aligned_alloc_on_node(alignment, size, node); break;
        case 3: p = numalloc_realloc_on_node(nullptr, size, node); break;
        case 4: p = numalloc_malloc_interleaved(size); break;
        case 5: p = numalloc_calloc_interleaved(1, size); break;
        case 6: p = numalloc_aligned_alloc_interleaved(alignment, size); break;
        case 7: p = psm_alloc(size, owner); break;
        case 8: p = psm_calloc(1, size, owner); break;
        case 9: p = psm_aligned_alloc(alignment, size, owner); break;
        case 10: p = psm_realloc(nullptr, size); break;
        case 11: {
            const numalloc_node_set set = draw_set(in);
            const auto policy = static_cast<numalloc_policy>(in.below(4));
            p = numalloc_malloc_on_set(size, policy, &set);
            served = is_usable(set) && policy != NUMALLOC_LOCAL;
            break;
        }
        default: {
            const numalloc_node_set set = draw_set(in);
            unsigned char weights[nodes];
            served = is_usable(set);
            for (int i = 0; i < nodes; ++i) {
                weights[i] = static_cast<unsigned char>(in.below(256));
                if (i < numalloc_node_set_count(&set) && weights[i] == 0) served = false;
            }
            p = numalloc_malloc_weighted(size, &set, weights);
            break;
        }
    }
    if ((p != nullptr) != served) std::fprintf(stderr, "api: way %zu, %zu bytes, node %d\n", way, size, node);
    must((p != nullptr) == served, served ? "there is memory" : "what is no node or owner is not served");
    return result;
}

// Where the calling thread's next blocks lie. `alone`: nobody else frees blocks of its meanwhile.
inline void place_thread(Input& in, bool alone) {
    const int node = draw_node(in);
    switch (in.below(7)) {
        case 0: {
            const std::string text =
                in.below(2) == 0 ? "preferred:" + std::to_string(node) : draw_text(in, 14, "bindprefloca:0123,-x");
            (void)numalloc_set_thread_placement(text.c_str());
            break;
        }
        case 1:
            must(numalloc_set_thread_placement(in.below(2) == 0 ? nullptr : "interleave") == 0, "a thread's placement");
            break;
        case 2: {
            const numalloc_node_set set = draw_set(in);
            const auto policy = static_cast<numalloc_policy>(in.below(4));
            if (numalloc_set_thread_policy(policy, policy == NUMALLOC_LOCAL ? nullptr : &set) != 0) break;
            numalloc_policy now;
            numalloc_node_set nodes_now;
            must(numalloc_thread_policy(&now, &nodes_now) == 1 && now == policy, "a thread's policy is what was set");
            break;
        }
        case 3: (void)numalloc_rehome_thread(pthread_self(), node); break;
        case 4:
            if (alone) (void)numalloc_rehome_with_blocks(node);
            break;
        case 5: {
            const int owner = static_cast<int>(in.below(8));
            must(psm_register(owner) == 0 && psm_self() == owner, "a thread's own number");
            break;
        }
        default:
            errno = 0;
            must(psm_register(-1 - node * node) == -1 && errno == EINVAL, "no owner's number");
            break;
    }
}

}  // namespace fuzz

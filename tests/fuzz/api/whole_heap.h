// All structures of all nodes, walked; assertions are on (NUMALLOC_CHECKS).
#pragma once

#include "heap/node/process_heap.h"

namespace fuzz {

inline void validate_heap() {
    using namespace numalloc;
    for (unsigned n = 0; n < process_heap.heaps(); ++n) {
        NodeHeap* const node = process_heap.opened(NodeId{n});
        if (node == nullptr) continue;
        for (unsigned c = 1; c < class_count; ++c) node->of(ClassId{c}).validate();
        node->pages.validate();
    }
}

}  // namespace fuzz

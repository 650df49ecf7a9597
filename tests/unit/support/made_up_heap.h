// The process's heap on a made-up machine, and what a program would do with it. The heap can be
// started once a process, so a test program has one machine: the first call says which.
#pragma once

#include <gtest/gtest.h>

#include <thread>

#include "heap/thread/attach.h"
#include "heap/thread/fast_paths.h"
#include "heap/thread/free.h"
#include "heap/thread/hand_over.h"
#include "heap/thread/housekeeping.h"
#include "heap/thread/refill.h"
#include "support/made_up_machine.h"

namespace numalloc::testing {

// ThreadSanitizer knows little of the address space: what the kernel chooses is in it, and all regions must fit.
constexpr SpaceOptions test_space{.stride = 128 * GiB, .bags = 8 * GiB, .held = true};

// Seconds after which a forked child that hangs is ended by its alarm: over 20 times what the slowest takes under a
// sanitizer.
constexpr unsigned child_limit = 300;

inline void start_heap(unsigned nodes, HeapOptions options = {}) {
    if (process_heap.started()) {
        ASSERT_EQ(process_heap.nodes(), nodes) << "one machine a test program";
        return;
    }
    auto* machine = new MadeUpMachine(MadeUpMachine::regular(nodes, 4));  // the topology is for ever
    os::init_topology(machine->reader(), machine->task_reader());
    ASSERT_EQ(os::topology().nodes(), nodes);
    options.space = test_space;
    options.thread_slot = align_up(sizeof(ThreadHeap), 64);
    ASSERT_TRUE(process_heap.start(options));
}

// What malloc does with a size up to small_limit, by class.
inline Allocation allocate_object(ClassId c) {
    if (void* p = pop(this_thread_heap, c.value)) return {p};
    return refill(this_thread_heap, c, shape_of(c).size);
}
inline void* allocate(ClassId c) { return allocate_object(c).p; }
inline void* allocate(Bytes n) { return allocate(class_of(n)); }

inline void release(void* p) {
    const Pushed pushed = push(this_thread_heap, p);
    if (pushed != Pushed::done) free_object(this_thread_heap, p, pushed, "free");
}

// A thread on a node: runs `body` with a heap there, and gives the heap back.
template <class Body>
std::thread thread_on(unsigned node, Body body) {
    return std::thread([=] {
        ASSERT_TRUE(attach_thread(NodeId{node}));
        body();
        detach_thread();
    });
}
template <class Body>
void run_on(unsigned node, Body body) {
    thread_on(node, body).join();
}

// Walks every structure of every node; ends the program (debug builds) at what does not fit.
inline void validate_heap() {
    for (unsigned n = 0; n < process_heap.heaps(); ++n) {
        NodeHeap* node = process_heap.opened(NodeId{n});
        if (node == nullptr) continue;
        for (unsigned c = 1; c < class_count; ++c) node->of(ClassId{c}).validate();
        node->pages.validate();
    }
}

}  // namespace numalloc::testing

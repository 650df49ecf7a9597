// Collects what the heaps hold, by node and class: exact for a process at rest, otherwise a picture of slightly
// different moments. Takes locks one at a time and waits for no fork: the caller may hold a stream that fork() waits
// for.
#pragma once

#include "heap/space/size_class.h"
#include "numalloc/numalloc.h"

namespace numalloc {

using NodeStatistics = numalloc_node_statistics;
using ClassStatistics = numalloc_class_statistics;
using ProcessStatistics = numalloc_process_statistics;

// The class whose statistics include those of class `c`. Readers know a class by its size alone, and some classes for
// alignments are as long as another.
constexpr unsigned counted_with(unsigned c) {
    const unsigned by_size = class_of(size_of_class(c)).value;
    return size_of_class(by_size) == size_of_class(c) ? by_size : c;
}

static_assert(
    [] {
        for (unsigned a = 1; a < class_count; ++a)
            for (unsigned b = 1; b < a; ++b)
                if (size_of_class(a) == size_of_class(b) && counted_with(a) != counted_with(b)) return false;
        return true;
    }(),
    "one record a size");

class Gathering {
public:
    struct OfNode {
        NodeStatistics node;
        ClassStatistics of_class[class_count];  // all 0 if counted_with() another
    };
    // How much to collect; each level includes those before it.
    //   heaps      what nodes hold: walks the shards of all classes. Objects in threads' lists count as live
    //   threads    what threads hold: walks all thread heaps, as many as threads ever ran at a time
    //   resident   what is in memory: the kernel walks its page tables for /proc/self/smaps
    enum class Depth { heaps, threads, resident };

    // Maps its own memory until it is destroyed: safe in a signal handler of a thread that holds no lock.
    explicit Gathering(Depth depth);
    ~Gathering();
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;

    // The nodes' heaps, by our numbers, and then the interleaved one. 0 before the heap works, or if there was no
    // memory.
    unsigned heaps() const { return heaps_; }
    bool in_use(unsigned n) const;
    const OfNode& of(unsigned n) const { return of_[n]; }
    NodeStatistics sum() const;

private:
    void take_nodes();
    void take_threads();
    void take_live();
    void take_resident();
    void join_classes();

    OfNode* of_ = nullptr;
    unsigned heaps_ = 0;
};

ProcessStatistics process_statistics();

// The public number of heap `n`: the kernel's, or NUMALLOC_INTERLEAVED.
int outer_number(unsigned n);

}  // namespace numalloc

#include "heap/pages/run_tree.h"

#include <initializer_list>

#include "base/check.h"

namespace numalloc {

// Updates longest() along the path from `from` towards `run`, from its end upwards. Does not recurse, because malloc
// may run on a signal stack of a few KiB. A path longer than `remembered`, which only a hostile program can cause, is
// walked down again for its upper part.
void RunTree::look_again(BagIndex from, BagIndex run) {
    constexpr unsigned remembered = 64;
    BagIndex way[remembered];
    for (BagIndex end = no_bag;;) {
        unsigned length = 0;
        for (BagIndex node = from; node != end && node != no_bag; node = towards(run, node))
            way[length++ % remembered] = node;
        for (unsigned k = min_of(length, remembered); k > 0; --k) {
            end = way[--length % remembered];
            set_longest(end, longest_of(end));
        }
        if (length == 0) return;
    }
}

// insert() and remove() walk down with a pointer to the link to change.

void RunTree::insert(BagIndex run) {
    BagIndex* link = &root_;
    const std::uint32_t p = priority(run);
    const std::uint32_t length = told(bag(run).run);
    while (*link != no_bag && priority(*link) >= p) {
        if (longest(*link) < length) set_longest(*link, length);
        link = run < *link ? &bag(*link).free.left : &bag(*link).free.right;
    }

    // Split the subtree at this link into the runs before and after the new one.
    BagIndex rest = *link;
    *link = run;
    BagIndex* left = &bag(run).free.left;
    BagIndex* right = &bag(run).free.right;
    while (rest != no_bag) {
        if (rest < run) {
            *left = rest;
            left = &bag(rest).free.right;
            rest = *left;
        } else {
            *right = rest;
            right = &bag(rest).free.left;
            rest = *right;
        }
    }
    *left = no_bag;
    *right = no_bag;
    look_again(bag(run).free.left, run);
    look_again(bag(run).free.right, run);
    set_longest(run, longest_of(run));
}

void RunTree::remove(BagIndex run) {
    BagIndex* link = &root_;
    while (*link != run) {
        NUMALLOC_ASSERT(*link != no_bag);
        link = run < *link ? &bag(*link).free.left : &bag(*link).free.right;
    }
    // Merge the two subtrees in its place, the higher priority on top. The merged nodes lie on the path towards the
    // removed run, which look_again() takes.
    BagIndex left = bag(run).free.left;
    BagIndex right = bag(run).free.right;
    while (left != no_bag && right != no_bag) {
        if (priority(left) >= priority(right)) {
            *link = left;
            link = &bag(left).free.right;
            left = *link;
        } else {
            *link = right;
            link = &bag(right).free.left;
            right = *link;
        }
    }
    *link = left != no_bag ? left : right;
    look_again(root_, run);
}

BagIndex RunTree::find(std::uint32_t bags, BagIndex from) const {
    const std::uint32_t wanted = told(bags < told_exactly ? bags : bags + step - 1);
    // Down towards `from`. A node at or above it qualifies if it, or its right subtree, has a run that is long enough.
    // The last one that qualifies is the lowest.
    BagIndex lowest = no_bag;
    for (BagIndex node = root_; node != no_bag && longest(node) >= wanted;) {
        const bool above = node >= from;
        if (above && (told(bag(node).run) >= wanted || longest(bag(node).free.right) >= wanted)) lowest = node;
        node = above ? bag(node).free.left : bag(node).free.right;
    }
    if (lowest == no_bag || told(bag(lowest).run) >= wanted) return lowest;
    for (BagIndex node = bag(lowest).free.right;;) {
        if (longest(bag(node).free.left) >= wanted) node = bag(node).free.left;
        else if (told(bag(node).run) >= wanted) return node;
        else node = bag(node).free.right;
    }
}

BagIndex RunTree::at_or_below(BagIndex b) const {
    BagIndex found = no_bag;
    for (BagIndex node = root_; node != no_bag;) {
        if (node <= b) found = node;
        node = node <= b ? bag(node).free.right : bag(node).free.left;
    }
    return found;
}

std::uint32_t RunTree::validate(BagIndex node) const {
    if (node == no_bag) return 0;
    const Bag& b = bag(node);
    NUMALLOC_ASSERT(b.state == BagState::free && b.run > 0);
    for (const BagIndex child : {b.free.left, b.free.right})
        if (child != no_bag) NUMALLOC_ASSERT(priority(child) <= priority(node));
    NUMALLOC_ASSERT(b.free.left == no_bag || b.free.left < node);
    NUMALLOC_ASSERT(b.free.right == no_bag || b.free.right > node);
    NUMALLOC_ASSERT(longest(node) == longest_of(node));
    return 1 + validate(b.free.left) + validate(b.free.right);
}

}  // namespace numalloc

#include "heap/pages/extent_tree.h"

#include <initializer_list>

#include "base/check.h"

namespace numalloc {

// From the end of the way that leads from `from` towards `run` up to `from`. Nothing recurses, because a
// malloc may run on a signal stack of a few KiB: where the way is longer than what is remembered of it, which
// chance alone does not bring about, it is gone again for what is above.
void ExtentTree::look_again(std::uint32_t from, std::uint32_t run) {
    constexpr unsigned remembered = 64;
    std::uint32_t way[remembered];
    for (std::uint32_t end = no_bag;;) {
        unsigned length = 0;
        for (std::uint32_t node = from; node != end && node != no_bag; node = towards(run, node)) way[length++ % remembered] = node;
        for (unsigned k = min_of(length, remembered); k > 0; --k) {
            end = way[--length % remembered];
            set_longest(end, longest_of(end));
        }
        if (length == 0) return;
    }
}

// Both walks go down with a pointer to the link to change.

void ExtentTree::insert(std::uint32_t run) {
    std::uint32_t* link = &root_;
    const std::uint32_t p = priority(run);
    const std::uint32_t length = told(bags_[run].run);
    while (*link != no_bag && priority(*link) >= p) {
        if (longest(*link) < length) set_longest(*link, length);
        link = run < *link ? &bags_[*link].extent.left : &bags_[*link].extent.right;
    }

    // Split what hangs here into the runs before and after the new one.
    std::uint32_t rest = *link;
    *link = run;
    std::uint32_t* left = &bags_[run].extent.left;
    std::uint32_t* right = &bags_[run].extent.right;
    while (rest != no_bag) {
        if (rest < run) {
            *left = rest;
            left = &bags_[rest].extent.right;
            rest = *left;
        } else {
            *right = rest;
            right = &bags_[rest].extent.left;
            rest = *right;
        }
    }
    *left = no_bag;
    *right = no_bag;
    look_again(bags_[run].extent.left, run);
    look_again(bags_[run].extent.right, run);
    set_longest(run, longest_of(run));
}

void ExtentTree::remove(std::uint32_t run) {
    std::uint32_t* link = &root_;
    while (*link != run) {
        NUMALLOC_ASSERT(*link != no_bag);
        link = run < *link ? &bags_[*link].extent.left : &bags_[*link].extent.right;
    }
    // Merge the two subtrees in its place, the higher priority on top. Where they were merged is the way towards
    // the run that is gone.
    std::uint32_t left = bags_[run].extent.left;
    std::uint32_t right = bags_[run].extent.right;
    while (left != no_bag && right != no_bag) {
        if (priority(left) >= priority(right)) {
            *link = left;
            link = &bags_[left].extent.right;
            left = *link;
        } else {
            *link = right;
            link = &bags_[right].extent.left;
            right = *link;
        }
    }
    *link = left != no_bag ? left : right;
    look_again(root_, run);
}

std::uint32_t ExtentTree::find(std::uint32_t bags) const {
    const std::uint32_t wanted = told(bags < told_exactly ? bags : bags + step - 1);
    if (longest(root_) < wanted) return no_bag;
    std::uint32_t node = root_;
    while (true) {
        if (longest(bags_[node].extent.left) >= wanted) node = bags_[node].extent.left;
        else if (told(bags_[node].run) >= wanted) return node;
        else node = bags_[node].extent.right;
    }
}

std::uint32_t ExtentTree::validate(std::uint32_t node) const {
    if (node == no_bag) return 0;
    const Bag& b = bags_[node];
    NUMALLOC_ASSERT(b.state == BagState::free && b.run > 0);
    for (const std::uint32_t child : {b.extent.left, b.extent.right})
        if (child != no_bag) NUMALLOC_ASSERT(priority(child) <= priority(node));
    NUMALLOC_ASSERT(b.extent.left == no_bag || b.extent.left < node);
    NUMALLOC_ASSERT(b.extent.right == no_bag || b.extent.right > node);
    NUMALLOC_ASSERT(longest(node) == longest_of(node));
    return 1 + validate(b.extent.left) + validate(b.extent.right);
}

}  // namespace numalloc

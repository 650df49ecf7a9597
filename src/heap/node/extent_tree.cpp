#include "heap/node/extent_tree.h"

#include <initializer_list>

#include "base/check.h"

namespace numalloc {

// Both walks go down with a pointer to the link to change, so that nothing recurses: a malloc may
// run on a signal stack of a few KiB.

void ExtentTree::insert(std::uint32_t run) {
    std::uint32_t* link = &root_;
    const std::uint32_t p = priority(run);
    while (*link != no_bag && priority(*link) >= p)
        link = before(run, *link) ? &bags_[*link].extent.left : &bags_[*link].extent.right;

    // Split what hangs here into the runs before and after the new one.
    std::uint32_t rest = *link;
    *link = run;
    std::uint32_t* left = &bags_[run].extent.left;
    std::uint32_t* right = &bags_[run].extent.right;
    while (rest != no_bag) {
        if (before(rest, run)) {
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
}

void ExtentTree::remove(std::uint32_t run) {
    std::uint32_t* link = &root_;
    while (*link != run) {
        NUMALLOC_ASSERT(*link != no_bag);
        link = before(run, *link) ? &bags_[*link].extent.left : &bags_[*link].extent.right;
    }
    // Merge the two subtrees in its place, the higher priority on top.
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
}

std::uint32_t ExtentTree::find(std::uint32_t bags) const {
    std::uint32_t best = no_bag;
    for (std::uint32_t node = root_; node != no_bag;) {
        if (bags_[node].run >= bags) {
            best = node;
            node = bags_[node].extent.left;
        } else {
            node = bags_[node].extent.right;
        }
    }
    return best;
}

std::uint32_t ExtentTree::longest() const {
    std::uint32_t node = root_;
    while (node != no_bag && bags_[node].extent.right != no_bag) node = bags_[node].extent.right;
    return node;
}

std::uint32_t ExtentTree::validate(std::uint32_t node) const {
    if (node == no_bag) return 0;
    const Bag& b = bags_[node];
    NUMALLOC_ASSERT(b.state == BagState::free && b.run > 0);
    for (const std::uint32_t child : {b.extent.left, b.extent.right})
        if (child != no_bag) NUMALLOC_ASSERT(priority(child) <= priority(node));
    if (b.extent.left != no_bag) NUMALLOC_ASSERT(before(b.extent.left, node));
    if (b.extent.right != no_bag) NUMALLOC_ASSERT(before(node, b.extent.right));
    return 1 + validate(b.extent.left) + validate(b.extent.right);
}

}  // namespace numalloc

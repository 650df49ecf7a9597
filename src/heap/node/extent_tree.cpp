#include "heap/node/extent_tree.h"

#include <initializer_list>

namespace numalloc {

// From the lowest run of the path up.
void ExtentTree::look_again(Path& path) {
    while (!path.empty()) {
        const std::uint32_t run = path.pop();
        set_longest(run, longest_of(run));
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
    Path path;
    path.push(run);
    std::uint32_t rest = *link;
    *link = run;
    std::uint32_t* left = &bags_[run].extent.left;
    std::uint32_t* right = &bags_[run].extent.right;
    while (rest != no_bag) {
        path.push(rest);
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
    look_again(path);
}

void ExtentTree::remove(std::uint32_t run) {
    Path path;
    std::uint32_t* link = &root_;
    while (*link != run) {
        NUMALLOC_ASSERT(*link != no_bag);
        path.push(*link);
        link = run < *link ? &bags_[*link].extent.left : &bags_[*link].extent.right;
    }
    // Merge the two subtrees in its place, the higher priority on top.
    std::uint32_t left = bags_[run].extent.left;
    std::uint32_t right = bags_[run].extent.right;
    while (left != no_bag && right != no_bag) {
        if (priority(left) >= priority(right)) {
            path.push(left);
            *link = left;
            link = &bags_[left].extent.right;
            left = *link;
        } else {
            path.push(right);
            *link = right;
            link = &bags_[right].extent.left;
            right = *link;
        }
    }
    *link = left != no_bag ? left : right;
    look_again(path);
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

// The objects of all classes on one node by themselves, for tests: taken and put as threads do.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "heap/central/class_heap.h"
#include "support/made_up_node.h"

namespace numalloc::testing {

class ClassHeapFixture : public ::testing::Test {
protected:
    Supply take(ClassId c, std::uint32_t want, unsigned shard = 0) {
        shards_->open(shard);
        return of(c).take(want, shard);
    }
    BagIndex bag_of(const void* p) const { return node.pages.region().bag_of(p); }
    std::uint32_t put(ClassId c, Batch list) { return of(c).put(list); }
    ClassHeap of(ClassId c) { return {*shards_, node.pages, c}; }

    // The objects of a supply, one by one.
    static std::vector<void*> objects(ClassId c, const Supply& s) {
        std::vector<void*> result;
        if (s.fresh != nullptr)
            for (std::uint32_t i = 0; i < s.count; ++i)
                result.push_back(static_cast<char*>(s.fresh) + Bytes{i} * shape_of(c).size);
        for (Object* o = s.list; o != nullptr; o = o->next) result.push_back(o);
        EXPECT_EQ(result.size(), s.count);
        return result;
    }
    static Batch list_of(const std::vector<void*>& objects) {
        Batch list;
        for (auto o = objects.rbegin(); o != objects.rend(); ++o) {
            static_cast<Object*>(*o)->next = list.head;
            list.head = static_cast<Object*>(*o);
            ++list.count;
        }
        return list;
    }
    // Exactly `count` objects, whatever it takes.
    std::vector<void*> take_many(ClassId c, std::size_t count, unsigned shard = 0) {
        std::vector<void*> result;
        while (result.size() < count) {
            const Supply s = take(c, static_cast<std::uint32_t>(count - result.size()), shard);
            EXPECT_GT(s.count, 0u);
            if (s.count == 0) break;
            for (void* o : objects(c, s)) result.push_back(o);
        }
        return result;
    }
    // All objects of `bags` new bags, sorted by address and filled.
    std::vector<void*> take_bags(ClassId c, std::size_t bags, unsigned shard = 0) {
        std::vector<void*> all = take_many(c, bags * shape_of(c).objects, shard);
        std::sort(all.begin(), all.end());
        fill(all, shape_of(c).size);
        return all;
    }
    static void fill(const std::vector<void*>& objects, Bytes size) {
        for (void* o : objects) std::memset(o, 0x5a, size);
    }
    // Frees all objects but every n-th, and returns those.
    std::vector<void*> free_all_but(ClassId c, const std::vector<void*>& all, std::size_t n) {
        std::vector<void*> kept, freed;
        for (std::size_t i = 0; i < all.size(); ++i) (i % n == 0 ? kept : freed).push_back(all[i]);
        of(c).give_to_bags(list_of(freed));
        return kept;
    }
    void validate(ClassId c) {
        of(c).validate();
        node.pages.validate();
    }
    void expect_nothing_held(ClassId c) {
        of(c).drain(false);
        validate(c);
        const ClassUse use = of(c).use();
        EXPECT_EQ(use.taken, 0u);
        EXPECT_EQ(use.ring, 0u);
        EXPECT_EQ(use.bags, 0u);
        EXPECT_EQ(node.pages.use().small_bags, 0u);
    }

    Node node{-1};

private:
    std::unique_ptr<Shards> shards_ = std::make_unique<Shards>();
};

}  // namespace numalloc::testing

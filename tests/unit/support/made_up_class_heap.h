// The objects of all classes on one node by themselves, for tests: taken and put as threads do.
#pragma once

#include <gtest/gtest.h>

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
    Shards& shards() { return *shards_; }

    Node node{-1};

private:
    std::unique_ptr<Shards> shards_ = std::make_unique<Shards>();
};

}  // namespace numalloc::testing

#include "heap/central/list_check.h"

namespace numalloc {

void die_of_interior(const void* p) { die_of_invalid_pointer("free", p, "points inside an object, not at its start"); }

void die_of_second_free(const void* p) { die_of_invalid_pointer("free", p, "was freed twice"); }

namespace {

// The list continues after its last object. If it is circular, the first object met twice was freed twice.
void look_for_ring(const Batch& list) {
    const Object* o = list.head;
    for (std::uint32_t i = 0; i < list.count; ++i, o = o->next) {
        const Object* later = o->next;
        for (std::uint32_t j = 0; j < list.count && later != nullptr; ++j, later = later->next)
            if (later == o) die_of_second_free(o);
    }
}

}  // namespace

void check_list(const Region& region, ClassId c, Batch list) {
    const ObjectCheck check(region, c);
    const bool long_bags = shape_of(c).bags > 1;
    const Object* before = list.head;
    const Object* o = list.head;
    for (std::uint32_t i = 0; i < list.count && o != nullptr; ++i) {
        if (!check.in_class(o)) die_of_damage(before);
        const BagIndex b = region.bag_of(o);
        if (!check.starts_object(o, region.first_object(long_bags ? region.head_of(b) : b, c))) die_of_interior(o);
        before = o;
        o = o->next;
    }
    if (o != nullptr) look_for_ring(list);
}

}  // namespace numalloc

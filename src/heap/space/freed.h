// The mark that tells a free object from one in use, wherever it rests: in a thread's list, in a ring, in its bag.
//
//   free object   | next | mark |  ...           mark == address ^ freed_key, in the hardened library secret_at(its place)
//   in use        |   the program's  ...         mark was set to 0 when it was handed out
//
// Where memory can have tags (tags.h), the last one of a free object is hidden in its mark, which is mark ^ tag.
//
// free() looks whether the mark is there, and malloc whether it still is. So a second free ends the program at that call,
// and so does a malloc whose list somebody has written to: an address that he put there has no mark, for nobody
// knows the key. A program may copy what it never wrote, marks of long ago with it; with the address in them
// they mean nothing where they get to. Nine instructions for both together, and no line of memory that is not read anyway.
#pragma once

#include <cstddef>

#include "heap/space/hardened.h"
#include "heap/space/invalid.h"
#include "heap/space/size_class.h"

namespace numalloc {

// By chance, once for the process. 0 before the heap begins.
extern std::uint64_t freed_key;
void choose_freed_key();

inline std::uint64_t mark_of(const void* p, std::uint64_t key) {
    return hardened ? secret_at(address_of(p) + offsetof(Object, mark)) : address_of(p) ^ key;
}

// Whether the object's mark was there. Then its last tag is, which is 0 where there are none; else only put_mark_back() may be next.
NUMALLOC_INLINE bool take_mark(Object* object, std::uint64_t key) {
    const std::uint64_t mark = mark_of(object, key);
#if defined(__x86_64__)
    // The difference to the mark is 0 if it is there: to compare and to clear are one instruction.
    bool same;
    __asm__("xorq %2, %0" : "+m"(object->mark), "=@ccz"(same) : "r"(mark));
    return same;
#else
    object->mark ^= mark;
    return object->mark <= tags::most;
#endif
}
NUMALLOC_INLINE std::nullptr_t put_mark_back(Object* object, std::uint64_t key) {
    object->mark ^= mark_of(object, key);
    return nullptr;
}

// Whether nobody wrote to a free object of the class; known of the hardened library's alone.
NUMALLOC_INLINE bool is_as_it_was(Object* object, ClassId c) { return !hardened || is_clear(object, shape_of(c).size); }
// An object comes into use: the pointer for the program, which must not learn from the object where another one is.
NUMALLOC_INLINE void* arm(void* object, ClassId c) {
    if constexpr (hardened) {
        auto* const made = static_cast<Object*>(object);
        made->next = nullptr;
        set_tail(object, shape_of(c).size, origin_of(Form::malloc, 0));
        const std::uint64_t last_tag = made->mark;
        if constexpr (tags::possible) made->mark = 0;
        return tags::give(object, shape_of(c).size - tail_bytes, last_tag);
    }
    return object;
}
// `size`: of its class, or of a big object's bags.
inline bool is_whole(const void* object, Bytes size) { return !hardened || origin_at(object, size) < origins; }

// Of any object in use.
inline bool was_freed(const Object* object) {
    return (tags::as_in_memory(object)->mark ^ mark_of(tags::untagged(object), freed_key)) <= tags::most;
}

// A free object serves the library itself.
inline Object* take_out(Object* object, ClassId c) {
    if (NUMALLOC_UNLIKELY(!take_mark(object, freed_key) || !is_as_it_was(object, c))) die_of_damage(object, "malloc");
    return object;
}
// A free object comes into use.
inline void* hand_out(Object* object, ClassId c) { return arm(take_out(object, c), c); }

// Of a free object that is linked to none.
inline bool rests_alone(const Object* object) { return object->next == nullptr && was_freed(object); }

// An object of so many bytes was freed, or was never used.
inline void make_freed(Object* object, Bytes size) {
    const std::uint64_t tag = tags::take(object, size - tail_bytes);
    object->mark = mark_of(object, freed_key) ^ tag;
    if constexpr (hardened) clear_freed(object, size);
}

}  // namespace numalloc

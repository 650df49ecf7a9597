// The mark that tells a free object from one in use, wherever it rests: in a thread's list, in a ring, in its bag.
//
//   free object   | next | mark |  ...           mark == address ^ freed_key, in the hardened library secret_at(its
//   place) in use        |   the program's  ...         mark was set to 0 when it was handed out
//
// free() looks whether the mark is there, and malloc whether it still is. So a second free ends the program at that
// call, and so does a malloc whose list somebody has written to: an address that he put there has no mark, for nobody
// knows the key. A program may copy what it never wrote, marks of long ago with it; with the address in them
// they mean nothing where they get to. Nine instructions for both together, and no line of memory that is not read
// anyway.
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

// Whether the object's mark was there. Then it is no longer; else only put_mark_back() may be next.
NUMALLOC_INLINE bool take_mark(Object* object, std::uint64_t key) {
    const std::uint64_t mark = mark_of(object, key);
#if defined(__x86_64__)
    // The difference to the mark is 0 if it is there: to compare and to clear are one instruction.
    bool same;
    __asm__("xorq %2, %0" : "+m"(object->mark), "=@ccz"(same) : "r"(mark));
    return same;
#else
    object->mark ^= mark;
    return object->mark == 0;
#endif
}
NUMALLOC_INLINE std::nullptr_t put_mark_back(Object* object, std::uint64_t key) {
    object->mark ^= mark_of(object, key);
    return nullptr;
}

// Whether nobody wrote to a free object of the class; known of the hardened library's alone.
NUMALLOC_INLINE bool is_as_it_was(Object* object, ClassId c) { return !hardened || is_clear(object, shape_of(c).size); }
// An object comes into use. The program must not learn from it where another one is.
NUMALLOC_INLINE void arm(void* object, ClassId c) {
    if constexpr (hardened) {
        static_cast<Object*>(object)->next = nullptr;
        set_tail(object, shape_of(c).size, origin_of(Form::malloc, 0));
    }
}
// `size`: of its class, or of a big object's bags.
inline bool is_whole(const void* object, Bytes size) { return !hardened || origin_at(object, size) < origins; }

// Of any object in use.
inline bool was_freed(const Object* object) { return object->mark == mark_of(object, freed_key); }

// A free object comes into use.
inline Object* hand_out(Object* object, ClassId c) {
    if (NUMALLOC_UNLIKELY(!take_mark(object, freed_key) || !is_as_it_was(object, c))) die_of_damage(object);
    arm(object, c);
    return object;
}

// Of a free object that is linked to none.
inline bool rests_alone(const Object* object) { return object->next == nullptr && was_freed(object); }

inline void set_mark(Object* object) { object->mark = mark_of(object, freed_key); }

// Marks an object of `size` bytes that was freed, or was never used.
inline void make_freed(Object* object, Bytes size) {
    set_mark(object);
    if constexpr (hardened) clear_freed(object, size);
}

}  // namespace numalloc

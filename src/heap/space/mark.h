// The mark that tells a free object from one in use, wherever it is kept: in a thread's list, in a ring, in its bag.
//
//   free object   | next | mark |  ...           mark == address ^ freed_key; hardened library: secret_at(its place)
//   in use        |   the program's  ...         mark was set to 0 when the object was handed out
//
// Every free checks that the object has no mark, and every malloc that its object still has one. So a second free ends
// the program at that call (exceptions: docs/security.md, 'Small blocks'). So does a malloc from a list that the
// program has overwritten: an address written there leads to no mark, because the key is secret. The checks touch no
// additional cache line.
//
// No mark is in memory that the program gets: malloc clears that of an object, and a bag that leaves its class loses
// all of them (ClassHeap::clear_marks). Otherwise a program that copies bytes that it never wrote, which it may, could
// bring a mark back to its place, and the next free there would seem to be a second one. Nor is a mark left in a
// register or on the stack: a compiler may fill what the program leaves undefined (an enum of Rust without its payload)
// with whatever a register holds after malloc. So the last statement that uses a mark is an assembler's, and overwrites
// its register. Only a call that ends the program may leave one.
#pragma once

#include <cstddef>

#include "heap/space/hardened.h"
#include "heap/space/invalid.h"
#include "heap/space/size_class.h"

namespace numalloc {

// Random, chosen once for the process. 0 before the heap is initialised.
extern std::uint64_t freed_key;
void choose_freed_key();

inline std::uint64_t mark_of(const void* p, std::uint64_t key) {
    if constexpr (!hardened) return address_of(p) ^ key;
    // Computed anew each time: kept for a later use it would be on the stack.
    __asm__ volatile("" : "+r"(p));
    return secret_at(address_of(p) + offsetof(Object, mark));
}

// The word at the mark's place XORed with its object's address: the key if the object has the mark.
NUMALLOC_INLINE std::uint64_t key_at(const Object* object) {
    std::uint64_t word = object->mark;
#if defined(__x86_64__)
    __asm__("xorq %[object], %[word]" : [word] "+r"(word) : [object] "r"(object));
#elif defined(__aarch64__)
    __asm__("eor %[word], %[word], %[object]" : [word] "+r"(word) : [object] "r"(object));
#else
    word ^= address_of(object);
#endif
    return word;
}
// Whether `mark` is at its place.
NUMALLOC_INLINE bool is_at(const Object* object, std::uint64_t mark) {
#if defined(__x86_64__)
    bool same;
    __asm__("cmpq %[mark], %[place]\n\tmovl $0, %k[mark]"
            : [mark] "+r"(mark), "=@ccz"(same)
            : [place] "m"(object->mark));
    return same;
#elif defined(__aarch64__)
    std::uint64_t word, same;
    __asm__("ldr %[word], %[place]\n\tcmp %[word], %[mark]\n\tcset %[same], eq\n\tmov %[mark], 0\n\tmov %[word], 0"
            : [word] "=&r"(word), [same] "=&r"(same), [mark] "+&r"(mark)
            : [place] "m"(object->mark)
            : "cc");
    return same != 0;
#else
    return object->mark == mark;
#endif
}
NUMALLOC_INLINE bool has_mark(const Object* object, std::uint64_t key) {
    if constexpr (hardened) return is_at(object, mark_of(object, key));
    else return key_at(object) == key;
}
NUMALLOC_INLINE void put_mark(Object* object, std::uint64_t key) {
    std::uint64_t mark = mark_of(object, key);
#if defined(__x86_64__)
    __asm__("movq %[mark], %[place]\n\txorl %k[mark], %k[mark]" : [place] "=m"(object->mark), [mark] "+r"(mark));
#elif defined(__aarch64__)
    __asm__("str %[mark], %[place]\n\tmov %[mark], 0" : [place] "=m"(object->mark), [mark] "+&r"(mark));
#else
    object->mark = mark;
#endif
}
// Clears the object's mark. Returns false if it is not there.
NUMALLOC_INLINE bool take_mark(Object* object, std::uint64_t key) {
    if (NUMALLOC_UNLIKELY(!has_mark(object, key))) return false;
    object->mark = 0;
    return true;
}

// Whether a free object of the class was not written to. Only the hardened library checks it.
NUMALLOC_INLINE bool is_as_it_was(Object* object, ClassId c) { return !hardened || is_clear(object, shape_of(c).size); }
// Prepares an object for the program. The link must not tell the program the address of another object.
NUMALLOC_INLINE void arm(void* object, ClassId c) {
    if constexpr (hardened) {
        static_cast<Object*>(object)->next = nullptr;
        set_tail(object, shape_of(c).size, origin_of(Form::malloc, 0));
    }
}
// Whether nothing wrote to the object's tail. `size`: of its class, or of a big object's bags.
inline bool is_whole(const void* object, Bytes size) { return !hardened || origin_at(object, size) < origins; }

// Valid for any object, also for one in use.
inline bool was_freed(const Object* object) { return has_mark(object, freed_key); }

// Hands out a free object. Ends the program if it is damaged.
inline Object* hand_out(Object* object, ClassId c) {
    if (NUMALLOC_UNLIKELY(!take_mark(object, freed_key) || !is_as_it_was(object, c))) die_of_damage(object);
    arm(object, c);
    return object;
}

// Whether the object is free and linked to no other.
inline bool rests_alone(const Object* object) { return object->next == nullptr && was_freed(object); }

inline void set_mark(Object* object) { put_mark(object, freed_key); }

// Marks an object of `size` bytes that was freed, or never used.
inline void make_freed(Object* object, Bytes size) {
    set_mark(object);
    if constexpr (hardened) clear_freed(object, size);
}

}  // namespace numalloc

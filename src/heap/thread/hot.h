// The fast paths of malloc and free: pop() and push(). They take no lock, make no system call and touch no other
// node's metadata. fast_paths.h selects these or, in the hardened library, those of hardened_paths.h.
//
// push() adds `bias` (address_space.h has the equation) and compares once with `bound`: NULL, foreign pointers, other
// nodes' objects, and every pointer of a thread without a heap (whose bound is 0) take the slow path. So do a new
// heap's first frees, which check that an object begins at the pointer: this catches the bugs of small programs at no
// cost to long-running ones. While the heap profile is on all frees take the slow path (heap/profile/profile.h). Every
// free checks that the object is allocated, and every malloc that it was free: mark.h.
#pragma once

#include "base/atomic.h"
#include "heap/thread/thread_heap.h"

namespace numalloc {

// What push() did with an object. Any value but `done` names the reason why the slow path must free it.
enum class Pushed { done, elsewhere, full, again };

namespace hot {

// Keeps the heap and the class index out of the register that returns the result, which saves a move in each of
// malloc's paths. Generates no instruction itself.
NUMALLOC_INLINE void keep_out_of_result(ThreadHeap*& heap, std::size_t& c) {
#if defined(__x86_64__)
    __asm__("" : "+d"(heap), "+c"(c));
#else
    (void)heap;
    (void)c;
#endif
}

// Returns --room < 0, by one instruction and its flag: gcc 12 uses a second instruction for the address.
NUMALLOC_INLINE bool decrement_below_zero(std::int32_t& room) {
#if defined(__x86_64__)
    bool negative;
    __asm__("subl $1, %0" : "+m"(room), "=@ccs"(negative));
    return negative;
#else
    return --room < 0;
#endif
}

// Clears the object's mark and returns whether it was there. `next` is the object's next, in the register that held the
// mark. After false undo_take() must follow, and the end of the program.
NUMALLOC_INLINE bool take_mark_and_next(Object* object, const std::uint64_t& key, Object*& next) {
#if defined(__x86_64__)
    // The difference to the mark is 0 if it is there: one instruction compares and clears.
    bool same;
    __asm__("movq %[key], %[next]\n\txorq %[object], %[next]\n\txorq %[next], %[mark]\n\tmovq %[link], %[next]"
            : [next] "=&r"(next), [mark] "+m"(object->mark), "=@ccz"(same)
            : [key] "m"(key), [object] "r"(object), [link] "m"(object->next));
    return same;
#else
    next = object->next;
    return take_mark(object, key);
#endif
}
NUMALLOC_INLINE std::nullptr_t undo_take([[maybe_unused]] Object* object, [[maybe_unused]] std::uint64_t key) {
#if defined(__x86_64__)
    object->mark ^= mark_of(object, key);
#endif
    return nullptr;
}

// Stores the object's mark and returns the list's head, in the register that held the mark.
NUMALLOC_INLINE Object* store_mark(Object* object, std::uint64_t mark, Object* const& head) {
#if defined(__x86_64__)
    __asm__("movq %[mark], %[place]\n\tmovq %[head], %[mark]"
            : [place] "=m"(object->mark), [mark] "+&r"(mark)
            : [head] "m"(head));
    return reinterpret_cast<Object*>(mark);
#elif defined(__aarch64__)
    __asm__("str %[mark], %[place]\n\tldr %[mark], %[head]"
            : [place] "=m"(object->mark), [mark] "+&r"(mark)
            : [head] "m"(head));
    return reinterpret_cast<Object*>(mark);
#else
    object->mark = mark;
    return head;
#endif
}

// Inserts an object that has its mark at the front of the current list.
NUMALLOC_INLINE void link(ThreadHeap* heap, std::size_t c, Object* object) {
    object->next = heap->head[c];
    heap->head[c] = object;
}

// Returns an object of the class, or nullptr if the slow path must find one or report a damaged list. `Copy` numbers
// the calls within one function, so that the compiler does not merge their ends.
template <int Copy = 0>
NUMALLOC_INLINE void* pop(ThreadHeap* heap, std::size_t c) {
    keep_out_of_result(heap, c);
    Object* const object = heap->head[c];
    if (NUMALLOC_UNLIKELY(object->next == nullptr)) return nullptr;
    Object* next;
    if (NUMALLOC_UNLIKELY(!take_mark_and_next(object, heap->freed_key, next)))
        return undo_take(object, heap->freed_key);
    heap->head[c] = next;
    ++heap->room[c];
    __asm__ volatile("" : : "i"(Copy));
    return object;
}

// Frees an object of the thread's own node into the current list. On `full`, `room` has been decremented already.
NUMALLOC_INLINE Pushed push(ThreadHeap* heap, void* p) {
    const std::uint64_t j = (address_of(p) + heap->bias) >> bag_shift;
    if (NUMALLOC_UNLIKELY(j >= heap->bound)) return Pushed::elsewhere;
    const auto* const byte = reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j;
    const std::size_t c = load_relaxed(*byte);
    if (NUMALLOC_UNLIKELY(decrement_below_zero(heap->room[c]))) return Pushed::full;
    auto* const object = static_cast<Object*>(p);
    const std::uint64_t mark = mark_of(object, heap->freed_key);
    if (NUMALLOC_UNLIKELY(object->mark == mark)) return Pushed::again;
    object->next = store_mark(object, mark, heap->head[c]);
    heap->head[c] = object;
    return Pushed::done;
}

}  // namespace hot
}  // namespace numalloc

// What surrounds one bug: a heap that is cold or warm, objects that are in use beside it, and the life of the program
// afterwards, which looks for proof that the heap is broken.
//
// A scene ends by a line on stdout and _exit(0), unless the allocator ends the program first:
//   survived             nothing wrong was seen
//   leaked: WHY          the program read what it must not know
//   corrupted: WHY       memory that is in use was changed, or was given out again
//   absent: WHY          this bug cannot be made here
#pragma once

#include <cstddef>
#include <cstdint>

namespace bugs {

// Kept from the compiler, which knows these calls to be wrong.
template <class T>
T* hide(T* p) {
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}

enum class Heat { cold, warm, other };

// `bytes` is the size of the objects that the bug is about.
void set_scene(std::size_t bytes, Heat heat);
std::size_t object_bytes();
// How many of them are enough to come round to the same one again.
int enough();

// An object, by the thread that the scene says: `other` has a second thread allocate. It is filled, and is in use
// until it is dropped.
char* make();
char* make_by(void* (*allocate)(std::size_t));
// Frees it, rightly, by the main thread.
void drop(char* p);
// It is no longer the program's: what frees it is the bug's own call.
void forget(char* p);
// The bytes that the allocator lets the program use of it.
std::size_t usable(char* p);

// What another call than malloc has returned is in use too; nullptr is let pass.
void claim(void* p, std::size_t bytes);
// Memory that malloc must never return.
void never_return(const void* begin, std::size_t bytes);

// Two objects in use, the second right behind the first where there are two such.
struct Pair {
    char* first;
    char* second;
};
Pair neighbours();

// A thread that has not called malloc or free yet, and what it is to do.
void start_thread();
void by_thread(void (*function)(void*), void* argument);

// Whether the word could be the address of something: it is mapped.
bool is_address(std::uintptr_t word);

[[noreturn]] void end(const char* verdict, const char* why = nullptr);

// The rest of the program's life, and its end.
[[noreturn]] void live_on();

}  // namespace bugs

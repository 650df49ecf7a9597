// numalloc for C++17: containers whose memory lies on the nodes you name. Header only, on top of numalloc.h.
//
//     std::vector<double, numalloc::node_allocator<double>> near(n, numalloc::node_allocator<double>(1));
//
//     numalloc::heap arena(2);                                 // on node 2, freed all at once
//     numalloc::heap_resource resource(arena);
//     std::pmr::unordered_map<int, std::pmr::string> map(&resource);
//
//                  allocator                resource (std::pmr)
//   a node         node_allocator<T>        node_resource          constructed from the node's number
//   an owner       owner_allocator<T>       owner_resource         from a thread's psm number
//   interleaved    interleaved_allocator<T> interleaved_resource
//   a heap         heap_allocator<T>        heap_resource          from a numalloc::heap, which must outlive
//                                                                  every use of the memory
//
// Containers with these allocators never change the place of memory on their own:
//   - Moving and swapping containers moves the memory with its allocator: nothing is copied, nothing throws, and
//     the container then allocates where its memory lies.
//   - Assigning a copy leaves the target in its place: the values are copied to its node.
//   - A copy-constructed container is in the place of its original, unless you pass another allocator.
//   - Two allocators are equal if they put memory in the same place.
//
// If there is no memory, or no such node or owner, they throw std::bad_alloc, with the reason in errno; for a count
// whose bytes exceed std::size_t, std::bad_array_new_length. Compiled without exceptions, they end the program. Thread
// safety: several threads may use one allocator or resource at once.
#ifndef NUMALLOC_NUMALLOC_HPP
#define NUMALLOC_NUMALLOC_HPP

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__has_include)
#if __has_include(<memory_resource>)
#include <memory_resource>
#endif
#endif

#include <numalloc/numalloc.h>

namespace numalloc {

// A heap of the program's own on one node (numalloc.h). Its destructor frees all that is still in it.
class heap {
public:
    // A heap on the node. std::bad_alloc if there is no such node or no memory.
    explicit heap(int node);
    // A heap over a set of nodes: numalloc_heap_create_on_set().
    heap(numalloc_policy policy, const numalloc_node_set& nodes);
    // Takes over the other's memory; the other may then only be destroyed or assigned to.
    heap(heap&& other) noexcept : heap_(std::exchange(other.heap_, nullptr)) {}
    // Destroys its own memory first, then takes over the other's.
    heap& operator=(heap&& other) noexcept {
        numalloc_heap_destroy(std::exchange(heap_, std::exchange(other.heap_, nullptr)));
        return *this;
    }
    // Frees everything in the heap.
    ~heap() { numalloc_heap_destroy(heap_); }

    // nullptr without memory. Freed by std::free, or with the heap.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
        return alignment <= alignof(std::max_align_t) ? numalloc_heap_malloc(heap_, bytes)
                                                      : numalloc_heap_aligned_alloc(heap_, alignment, bytes);
    }
    // Frees everything in the heap; runs no destructors.
    void reset() noexcept { numalloc_heap_reset(heap_); }

    // An allocation fails if the heap would then hold more than `bytes` bytes.
    void set_limit(std::size_t bytes) noexcept { numalloc_heap_set_limit(heap_, bytes); }
    // Whether `p`, any pointer, points into memory that the heap holds.
    bool contains(const void* p) const noexcept { return numalloc_heap_contains(heap_, p) != 0; }

    // The node that the heap was created on.
    int node() const noexcept { return numalloc_heap_node(heap_); }
    // Bytes of the objects in use, each rounded up to its size class.
    std::size_t used() const noexcept { return numalloc_heap_used(heap_); }
    // Bytes that the heap holds for its objects and for future ones.
    std::size_t held() const noexcept { return numalloc_heap_held(heap_); }
    // For the functions of numalloc.h. This object keeps the ownership.
    numalloc_heap* get() const noexcept { return heap_; }

private:
    numalloc_heap* heap_;
};

// Frees what any function of numalloc.h returned: std::unique_ptr<char[], numalloc::deleter>. Runs no destructor, so it
// is for raw memory and objects of trivial types.
struct deleter {
    // Ignores nullptr.
    void operator()(void* p) const noexcept { psm_free(p); }
};

// A block and its usable bytes, at least as many as requested; nullptr and 0 if there is no memory. Freed by psm_free,
// or by std::free where malloc is numalloc's. Size 0 is treated as 1.
struct sized_block {
    void* data;         // nullptr if there is no memory
    std::size_t bytes;  // usable bytes
};
// As malloc(), for at least `bytes` bytes.
[[nodiscard]] inline sized_block allocate_at_least(std::size_t bytes) noexcept {
    const std::size_t good = numalloc_good_size(bytes);
    void* p = nullptr;
    // Not std::malloc(), which may be another library's.
    if (good == 0 || numalloc_malloc_batch(good, &p, 1) == 0) return {nullptr, 0};
    return {p, good};
}

// Sets the placement of the calling thread's malloc while it exists, then restores the previous one. For one scope of
// one thread: it cannot be copied or moved, and scopes must end in the reverse order of their beginning. If the
// placement was refused, ok() is false, errno has the reason, and nothing has changed.
class scoped_placement {
public:
    // Local, or interleaved over all usable nodes.
    explicit scoped_placement(numalloc_policy policy) noexcept : scoped_placement(policy, nullptr) {}
    // Over the set: numalloc_set_thread_policy().
    scoped_placement(numalloc_policy policy, const numalloc_node_set& nodes) noexcept
        : scoped_placement(policy, &nodes) {}
    scoped_placement(const scoped_placement&) = delete;
    scoped_placement& operator=(const scoped_placement&) = delete;
    // Restores the previous placement.
    ~scoped_placement() {
        if (!ok_) return;
        if (!had_own_) {
            numalloc_set_thread_placement(nullptr);
        } else {
            const bool takes_nodes = before_ == NUMALLOC_BIND || before_ == NUMALLOC_PREFER;
            numalloc_set_thread_policy(before_, takes_nodes ? &nodes_before_ : nullptr);
        }
    }
    // Whether the placement was accepted; if not, errno has the reason.
    bool ok() const noexcept { return ok_; }

private:
    scoped_placement(numalloc_policy policy, const numalloc_node_set* nodes) noexcept
        : had_own_(numalloc_thread_policy(&before_, &nodes_before_) == 1),
          ok_(numalloc_set_thread_policy(policy, nodes) == 0) {}

    numalloc_policy before_ = NUMALLOC_LOCAL;
    numalloc_node_set nodes_before_{};
    bool had_own_;
    bool ok_;
};

namespace detail {

[[noreturn]] inline void no_memory() {
#if defined(__cpp_exceptions)
    throw std::bad_alloc();
#else
    std::abort();
#endif
}

[[noreturn]] inline void too_many() {
#if defined(__cpp_exceptions)
    throw std::bad_array_new_length();
#else
    std::abort();
#endif
}

inline bool ordinary(std::size_t alignment) noexcept { return alignment <= alignof(std::max_align_t); }

// Where memory comes from: one small value for each row of the table above. All of it is freed by psm_free, which is
// numalloc's even if the process's free is another library's (in a plugin, for example).
class node_place {
public:
    static constexpr bool one_for_all = false;
    explicit node_place(int node) noexcept : node_(node) {}
    void* take(std::size_t bytes, std::size_t alignment) const noexcept {
        return ordinary(alignment) ? numalloc_malloc_on_node(bytes, node_)
                                   : numalloc_aligned_alloc_on_node(alignment, bytes, node_);
    }
    int node() const noexcept { return node_; }
    bool same_as(const node_place& other) const noexcept { return node_ == other.node_; }

private:
    int node_;
};

class owner_place {
public:
    static constexpr bool one_for_all = false;
    // Without a number: that of the thread that makes the allocator.
    owner_place() noexcept : owner_(psm_self()) {}
    explicit owner_place(int owner) noexcept : owner_(owner) {}
    void* take(std::size_t bytes, std::size_t alignment) const noexcept {
        return ordinary(alignment) ? psm_alloc(bytes, owner_) : psm_aligned_alloc(alignment, bytes, owner_);
    }
    int owner() const noexcept { return owner_; }
    bool same_as(const owner_place& other) const noexcept { return owner_ == other.owner_; }

private:
    int owner_;
};

class interleaved_place {
public:
    static constexpr bool one_for_all = true;
    void* take(std::size_t bytes, std::size_t alignment) const noexcept {
        return ordinary(alignment) ? numalloc_malloc_interleaved(bytes)
                                   : numalloc_aligned_alloc_interleaved(alignment, bytes);
    }
    bool same_as(const interleaved_place&) const noexcept { return true; }
};

class heap_place {
public:
    static constexpr bool one_for_all = false;
    // Implicit, so that a heap itself can be passed to a container.
    heap_place(heap& from) noexcept : heap_(from.get()) {}
    void* take(std::size_t bytes, std::size_t alignment) const noexcept {
        return ordinary(alignment) ? numalloc_heap_malloc(heap_, bytes)
                                   : numalloc_heap_aligned_alloc(heap_, alignment, bytes);
    }
    int node() const noexcept { return numalloc_heap_node(heap_); }
    bool same_as(const heap_place& other) const noexcept { return heap_ == other.heap_; }

private:
    numalloc_heap* heap_;
};

}  // namespace detail

// Meets all requirements of a standard allocator. `Place` has the constructors and says where memory comes from.
template <class T, class Place>
class basic_allocator : public Place {
public:
    using value_type = T;                                            // the type of the objects
    using propagate_on_container_copy_assignment = std::false_type;  // the target keeps its place
    using propagate_on_container_move_assignment = std::true_type;   // the memory moves with its place
    using propagate_on_container_swap = std::true_type;              // as for a move
    // Whether all allocators of this type put memory in the same place.
    using is_always_equal = std::bool_constant<Place::one_for_all>;

    using Place::Place;
    // If `Place` has a default: for an owner, the calling thread's.
    basic_allocator() = default;
    // The same place as the other's.
    basic_allocator(const basic_allocator&) noexcept = default;
    // Takes over the other's place.
    basic_allocator& operator=(const basic_allocator&) noexcept = default;
    // The same place, for objects of another type.
    template <class U>
    basic_allocator(const basic_allocator<U, Place>& other) noexcept : Place(static_cast<const Place&>(other)) {}

    // Memory for `count` objects, with their alignment. std::bad_alloc if there is no memory or no such place,
    // std::bad_array_new_length if the bytes exceed std::size_t. A count of 0 gives a valid pointer.
    [[nodiscard]] T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) detail::too_many();
        void* const p = Place::take(count * sizeof(T), alignof(T));
        if (p == nullptr) detail::no_memory();
        return static_cast<T*>(p);
    }
    // For C++23: containers that know it use the whole block, which may be longer than `count`.
    struct allocation {
        T* ptr;             // the memory
        std::size_t count;  // in objects
    };
    // As allocate(), for at least `count` objects.
    [[nodiscard]] allocation allocate_at_least(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) detail::too_many();
        const std::size_t good = numalloc_good_size(count * sizeof(T));
        const std::size_t more = good / sizeof(T);
        const std::size_t taken = more > count ? more : count;
        return {allocate(taken), taken};
    }
    // Any thread may call it; ignores nullptr.
    void deallocate(T* p, std::size_t) noexcept { psm_free(p); }
    // A copy of a container is in the place of its original.
    basic_allocator select_on_container_copy_construction() const noexcept { return *this; }
};

// Whether both put memory in the same place.
template <class T, class U, class Place>
bool operator==(const basic_allocator<T, Place>& a, const basic_allocator<U, Place>& b) noexcept {
    return a.same_as(b);
}
// Whether they put memory in different places.
template <class T, class U, class Place>
bool operator!=(const basic_allocator<T, Place>& a, const basic_allocator<U, Place>& b) noexcept {
    return !(a == b);
}

// On a node, by its number.
template <class T>
using node_allocator = basic_allocator<T, detail::node_place>;
// On an owner's node, by the thread's number.
template <class T>
using owner_allocator = basic_allocator<T, detail::owner_place>;
// Over all usable nodes, page by page.
template <class T>
using interleaved_allocator = basic_allocator<T, detail::interleaved_place>;
// In a heap, which must outlive every use of the memory.
template <class T>
using heap_allocator = basic_allocator<T, detail::heap_place>;

#if defined(__cpp_lib_memory_resource)

// A std::pmr::memory_resource for the same places. Equal resources put memory in the same place; compiled without RTTI,
// a resource is equal only to itself.
template <class Place>
class basic_resource : public std::pmr::memory_resource, public Place {
public:
    using Place::Place;

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        void* const p = Place::take(bytes, alignment);
        if (p == nullptr) detail::no_memory();
        return p;
    }
    void do_deallocate(void* p, std::size_t, std::size_t) override { psm_free(p); }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        if (this == &other) return true;
#if defined(__cpp_rtti)
        const auto* const same = dynamic_cast<const basic_resource*>(&other);
        return same != nullptr && this->same_as(*same);
#else
        return false;
#endif
    }
};

// On a node, by its number.
using node_resource = basic_resource<detail::node_place>;
// On an owner's node, by the thread's number.
using owner_resource = basic_resource<detail::owner_place>;
// Over all usable nodes, page by page.
using interleaved_resource = basic_resource<detail::interleaved_place>;
// In a heap, which must outlive every use of the memory.
using heap_resource = basic_resource<detail::heap_place>;

#endif

inline heap::heap(numalloc_policy policy, const numalloc_node_set& nodes)
    : heap_(numalloc_heap_create_on_set(policy, &nodes)) {
    if (heap_ == nullptr) detail::no_memory();
}

inline heap::heap(int node) : heap_(numalloc_heap_create(node)) {
    if (heap_ == nullptr) detail::no_memory();
}

}  // namespace numalloc

#endif

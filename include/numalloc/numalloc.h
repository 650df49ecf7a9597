/* numalloc: memory where you say. C99 and C++; link with -lnumalloc (or preload it).
 *
 * Nodes are named by the kernel's numbers, as in /sys/devices/system/node and in numactl; there may
 * be gaps between them. Sizes are bytes. Every function may be called from any thread at any time;
 * none is async-signal-safe. All blocks are freed by free() (or psm_free(), which is the same), from
 * any thread, and malloc_usable_size() and realloc() take them like any other block.
 *
 * realloc() keeps a block where it is: one that must move stays on its node (psm_alloc's, on a node, moved by
 * numalloc_move, or another thread's), interleaved, or in its heap. With NUMALLOC_REALLOC_KEEPS_NODE=0 only
 * blocks of a heap stay; others go to where the calling thread's malloc() is served. psm_realloc() keeps the
 * node in either case. As with malloc(), a full node's block goes to the nearest that has room.
 *
 * Errors: functions that return a pointer return NULL, all others -1, and set errno:
 *   EINVAL  a node that the machine does not have, an owner that nobody is or can become, an
 *           alignment that is no power of two
 *   ENXIO   a node that exists but that this process may not use: outside of its cpuset or of
 *           numactl's --membind, or a node without memory
 *   ENOMEM  no memory. With NUMALLOC_MEMORY_BINDING=strict also when only the node is full; otherwise
 *           a full node's request is served by the nearest node that has room
 * On success errno is left alone.
 *
 * On a machine of one node, and where the kernel refuses to bind memory (containers), everything
 * works the same, with nowhere else for memory to be.
 *
 * In the sources' words: psm_ is the interface of JArena (partitioned shared memory), the placement
 * levers are those of the study of allocators and placement for data analytics on NUMA machines, and
 * the interleaved heap is NUMAlloc's. docs/api.md shows how they are used.
 */
#ifndef NUMALLOC_NUMALLOC_H
#define NUMALLOC_NUMALLOC_H

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "node_set.h"

/* GCC warns where a block goes to another function than these. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define NUMALLOC_FREED_BY(function) __attribute__((malloc(function, 1)))
#else
#define NUMALLOC_FREED_BY(function)
#endif
#if defined(__GNUC__)
#define NUMALLOC_ALLOCATES                                                                              \
    __attribute__((malloc, warn_unused_result)) NUMALLOC_FREED_BY(free) NUMALLOC_FREED_BY(realloc)      \
        NUMALLOC_FREED_BY(psm_free) NUMALLOC_FREED_BY(numalloc_psm_free) NUMALLOC_FREED_BY(psm_realloc) \
            NUMALLOC_FREED_BY(numalloc_psm_realloc)
#define NUMALLOC_RESIZES __attribute__((warn_unused_result))
#define NUMALLOC_SIZE(...) __attribute__((alloc_size(__VA_ARGS__)))
#define NUMALLOC_ALIGN(argument) __attribute__((alloc_align(argument)))
#else
#define NUMALLOC_ALLOCATES
#define NUMALLOC_RESIZES
#define NUMALLOC_SIZE(...)
#define NUMALLOC_ALIGN(argument)
#endif

#ifdef __cplusplus
#define NUMALLOC_NOEXCEPT noexcept
extern "C" {
#else
#define NUMALLOC_NOEXCEPT
#endif

/* As realloc(), and the block stays on its node, or interleaved. Of NULL, a block of the calling thread's own. NULL
 * leaves `p` as it was; size 0 frees `p` and returns NULL. */
void *psm_realloc(void *p, size_t bytes) NUMALLOC_NOEXCEPT NUMALLOC_RESIZES NUMALLOC_SIZE(2);
/* psm_realloc(), by a name that no other library has. */
void *numalloc_psm_realloc(void *p, size_t bytes) NUMALLOC_NOEXCEPT NUMALLOC_RESIZES NUMALLOC_SIZE(2);
/* free(), whichever library's free() the caller would get. NULL is ignored. */
void psm_free(void *p) NUMALLOC_NOEXCEPT;
/* psm_free(), by a name that no other library has. */
void numalloc_psm_free(void *p) NUMALLOC_NOEXCEPT;

/* ---- The library. */

/* The header's version, in three numbers and as one: 0.1.0 is 100. */
#define NUMALLOC_VERSION_MAJOR 0
#define NUMALLOC_VERSION_MINOR 1 /* the second number */
#define NUMALLOC_VERSION_PATCH 0 /* the third number */
/* All three, each later version's the larger. */
#define NUMALLOC_VERSION (NUMALLOC_VERSION_MAJOR * 10000 + NUMALLOC_VERSION_MINOR * 100 + NUMALLOC_VERSION_PATCH)

/* NUMALLOC_VERSION of the library that the program runs with. Does not fail. */
int numalloc_version(void) NUMALLOC_NOEXCEPT;

/* Where the library's lines go from now on, instead of stderr; NULL: to stderr again. `take` gets each line without its
 * end, on the thread that it concerns, maybe within a malloc or free of its own: it must not call either. */
void numalloc_set_output(void (*take)(const char *line, void *argument), void *argument) NUMALLOC_NOEXCEPT;

/* The option (docs/options.md; "purge_delay" or "NUMALLOC_PURGE_DELAY") as the text that would set it, ended with NUL
 * and cut to `bytes`. Returns the length of the whole text. EINVAL for a name that no option has. */
int numalloc_option_get(const char *name, char *text, size_t bytes) NUMALLOC_NOEXCEPT;
/* Sets an option of those that may change while the program runs: docs/options.md says which. Returns 0. EINVAL for a
 * name that no option has or a text that it does not accept, EPERM for an option that is read only once. */
int numalloc_option_set(const char *name, const char *text) NUMALLOC_NOEXCEPT;

/* ---- Statistics: what the heaps hold and did. statistics.def says what each is.
 *
 * Exact for a process at rest, otherwise a picture of slightly different moments. Each call walks the heaps of all
 * threads. `bytes` is sizeof of the caller's struct: of a newer library it gets what it knows, of an older one zeros
 * for the rest. */

/* Instead of a node's number: all nodes together; and the interleaved memory. */
#define NUMALLOC_ALL_NODES (-1)
#define NUMALLOC_INTERLEAVED (-2) /* what lies on all nodes page by page */

/* What a node's heap holds and did. */
struct numalloc_node_statistics {
#define NUMALLOC_STATISTIC(name, unit, what) unsigned long long name;
#include "statistics.def"
};
/* The objects of one size class. */
struct numalloc_class_statistics {
#define NUMALLOC_CLASS_STATISTIC(name, unit, what) unsigned long long name;
#include "statistics.def"
};
/* What is counted once for the process. */
struct numalloc_process_statistics {
#define NUMALLOC_PROCESS_STATISTIC(name, unit, what) unsigned long long name;
#include "statistics.def"
};

/* Of a node, of all nodes together, or of the interleaved memory. Returns 0; EINVAL and ENXIO for a node as everywhere.
 */
int numalloc_statistics(int node, struct numalloc_node_statistics *into, size_t bytes) NUMALLOC_NOEXCEPT;
/* Of the size class that serves `size` bytes. Returns the size of its objects; EINVAL for more than 512 KiB, which has
 * no class. */
long long numalloc_statistics_of_class(int node, size_t size, struct numalloc_class_statistics *into,
                                       size_t bytes) NUMALLOC_NOEXCEPT;
/* Of the process. Returns 0, and does not fail. */
int numalloc_statistics_of_process(struct numalloc_process_statistics *into, size_t bytes) NUMALLOC_NOEXCEPT;

/* How all statistics are written. */
enum numalloc_format {
    NUMALLOC_TEXT, /* to be read */
    NUMALLOC_JSON  /* one line */
};
/* All of it, ended with NUL and cut to `bytes`. Returns the length of the whole, which another call may find changed;
 * EINVAL for another format. */
long long numalloc_statistics_text(enum numalloc_format format, char *text, size_t bytes) NUMALLOC_NOEXCEPT;
/* Appends it to a file, which is made where there is none; "%p" in the name is the process, JSON where the name ends in
 * .json, text otherwise. "exit" is stderr. Returns 0, or -1 with what open(2) or write(2) say. */
int numalloc_statistics_write(const char *file) NUMALLOC_NOEXCEPT;

/* ---- The machine, as this process may use it. */

/* How many nodes have memory that this process may use; at least 1. Does not fail. */
int numalloc_node_count(void) NUMALLOC_NOEXCEPT;

/* Writes the numbers of these nodes, ascending, at most `capacity` of them, into `nodes` (which may be
 * NULL when capacity is 0). Returns how many there are. Does not fail. */
int numalloc_nodes(int *nodes, int capacity) NUMALLOC_NOEXCEPT;

/* The distance between two usable nodes as the firmware says: 10 within a node, larger for farther
 * ones, 20 where nothing is said. */
int numalloc_distance(int from, int to) NUMALLOC_NOEXCEPT;

/* The CPUs of any node of the machine (EINVAL for others), as a cpu_set_t of `bytes` bytes at `cpu_set`.
 * Returns how many there are: 0 for a node of memory only. EINVAL when a CPU does not fit. Reads a file
 * in /sys. The process may be allowed fewer CPUs. */
int numalloc_node_cpus(int node, size_t bytes, void *cpu_set) NUMALLOC_NOEXCEPT;

/* Bytes of a usable node that can be had without taking them from programs: free memory and clean
 * cache. Up to 100 ms old, so that it may be asked often. EIO where the system does not say. */
long long numalloc_node_free_memory(int node) NUMALLOC_NOEXCEPT;

/* The node of the memory at `p`. For our own memory a few instructions: the node whose heap the block
 * is from, which is where its pages are or will be (unless the node was full, or the kernel refuses to
 * bind). For interleaved blocks, blocks that numalloc_move() moved, and memory that is not ours, the
 * kernel is asked where the page is: ENOENT or EFAULT for a page that was never written, EPERM or ENOSYS
 * where the kernel does not tell (on a machine of one node: that one). */
int numalloc_node_of(const void *p) NUMALLOC_NOEXCEPT;

/* ---- Where memory lies: pages by node, as the kernel says now. Each call adds to on_node[n] the pages that
 * lie on node n, for n below `nodes`, so that several calls add up; `on_node` is the caller's, zeroed by the
 * caller, and may be NULL when `nodes` is 0. Pages are the system's (sysconf(_SC_PAGESIZE)), those of huge
 * pages as well; a page that the memory only touches counts whole. Pages that were never written, are swapped
 * out or not mapped lie nowhere and do not count. Returns how many were found on any node, 0 for size 0.
 *
 * The kernel is asked by move_pages(2) without nodes, 512 pages a call. Where it refuses (containers): on a
 * machine of one node mincore(2) answers instead, and a page that was only read may count; on others -1 with
 * EPERM or ENOSYS, and nothing was added unless the refusal began meanwhile. */

/* Of `bytes` from `p`, any memory of the process. EINVAL for a range that goes beyond the end of addresses. */
long long numalloc_pages_of_range(const void *p, size_t bytes, size_t *on_node, int nodes) NUMALLOC_NOEXCEPT;
/* Of all usable bytes of a block. EINVAL for what is no block of ours in use. */
long long numalloc_pages_of_block(const void *p, size_t *on_node, int nodes) NUMALLOC_NOEXCEPT;

/* The node of the CPU on which the calling thread runs now; no system call on the usual path. */
int numalloc_current_node(void) NUMALLOC_NOEXCEPT;

/* ---- Memory of a node. A small block lies among blocks of the same node only: no page is shared
 * between nodes, and nothing is padded to a page. */

/* As malloc(), on the node. Owned by the caller, freed by free(). Size 0 is the smallest block. */
void *numalloc_malloc_on_node(size_t size, int node) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* As calloc(), on the node. ENOMEM also for a product that is too large. */
void *numalloc_calloc_on_node(size_t count, size_t size, int node) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(1, 2);
/* As realloc(), and the result lies on the node: a block of another node is copied there even when it
 * could stay. An object of a heap on that node stays in its heap, one of another node's heap leaves it.
 * NULL leaves `p` as it was. Size 0 frees `p` and returns NULL. */
void *numalloc_realloc_on_node(void *p, size_t size, int node) NUMALLOC_NOEXCEPT NUMALLOC_RESIZES NUMALLOC_SIZE(2);
/* Any power of two; any size. */
void *numalloc_aligned_alloc_on_node(size_t alignment, size_t size, int node) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(2) NUMALLOC_ALIGN(1);

/* ---- Sets of nodes (node_set.h). Functions that take one: EINVAL for an empty set and for nodes that the machine
 * does not have, ENXIO for nodes that this process may not use. */

/* A set from libnuma's syntax: "0-3,8", "all" (all usable nodes), "" (none); "!2" is all usable nodes but these, and
 * "+0-1" counts the usable nodes from 0. Returns 0. EINVAL for another text, EINVAL or ENXIO for a node as above; then
 * `set` is as it was. */
int numalloc_node_set_parse(const char *text, numalloc_node_set *set) NUMALLOC_NOEXCEPT;
/* The set as "0-3,8", ended with NUL and cut to `bytes`. Returns the length of the whole text. Does not fail. */
int numalloc_node_set_print(const numalloc_node_set *set, char *text, size_t bytes) NUMALLOC_NOEXCEPT;

/* Nodes by what they have; only such as this process may use. */
enum numalloc_node_kind {
    NUMALLOC_NODES_USABLE,         /* all of them */
    NUMALLOC_NODES_WITH_CPUS,      /* where threads can run */
    NUMALLOC_NODES_MEMORY_ONLY,    /* without CPUs: CXL, HBM in its flat mode, persistent memory */
    NUMALLOC_NODES_MOST_BANDWIDTH, /* the largest read_bandwidth that the kernel states, as of HBM */
    NUMALLOC_NODES_SLOWER_TIERS    /* not in the kernel's first memory tier, as CXL and persistent memory */
};
/* The usable nodes of a kind, as the kernel's attributes in /sys say now. Returns how many there are, 0 for none.
 * ENODATA where the kernel says nothing of bandwidth or tiers, EINVAL for another kind. Reads some files. */
int numalloc_node_set_of_kind(enum numalloc_node_kind kind, numalloc_node_set *set) NUMALLOC_NOEXCEPT;

/* How memory lies over a set of nodes. */
enum numalloc_policy {
    NUMALLOC_LOCAL,      /* where the thread belongs; takes no set */
    NUMALLOC_INTERLEAVE, /* all nodes of the set in turn */
    NUMALLOC_BIND,       /* the nearest of the set that has room, and no other */
    NUMALLOC_PREFER      /* the nearest of the set that has room, else the nearest other */
};

/* A block over a set of nodes; "nearest" is seen from the calling thread. Interleaved, a block above 512 KiB lies on
 * the nodes page by page, and a smaller one whole on one node, the next one on the next. Freed by free(). realloc()
 * keeps what a large block has; one that becomes small stays on one of the nodes. EINVAL for NUMALLOC_LOCAL; ENOMEM
 * also where all nodes of a NUMALLOC_BIND are full. Where the kernel refuses to bind, a large block lies where it is
 * touched first. */
void *numalloc_malloc_on_set(size_t size, enum numalloc_policy policy,
                             const numalloc_node_set *set) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* The same by weights: weights[i], 1 to 255, belongs to the i-th node of the set, in order of number (EINVAL for 0).
 * Each node holds its share of a large block, in stripes of pages that are as short as some 512 mappings allow. Small
 * blocks go to the nodes in turn, weights[i] blocks to node i. */
void *numalloc_malloc_weighted(size_t size, const numalloc_node_set *set,
                               const unsigned char *weights) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);

/* ---- Sizes, blocks in place, many blocks at once. For blocks of every place. */

/* The usable bytes of a block that malloc(size) would return: asking for as many costs no memory more. Of size 0
 * the smallest block's. 0 for a size that no block can have. Does not fail. A block of 32 KiB and more may have more
 * bytes than that: malloc gives a free one of a slightly larger size before it touches new pages. A guarded one
 * (NUMALLOC_GUARDED) has as many as were asked for. So ask for the good size to use all of it. */
size_t numalloc_good_size(size_t size) NUMALLOC_NOEXCEPT;
/* Makes a block longer or shorter where it is, as near to `size` bytes as that goes, and moves nothing. Returns
 * the usable bytes afterwards, which are fewer than `size` where the block cannot grow, and does not fail.
 * `p` is a block in use; size 0 is 1. No other thread may move, resize or free it meanwhile. */
size_t numalloc_resize_in_place(void *p, size_t size) NUMALLOC_NOEXCEPT;
/* `count` blocks of malloc(size), owned like any other, written to `blocks`. Returns how many there are: fewer than
 * `count`, with ENOMEM, where memory ends; those are good. */
size_t numalloc_malloc_batch(size_t size, void **blocks, size_t count) NUMALLOC_NOEXCEPT;
/* free() of each; NULL among them is ignored. */
void numalloc_free_batch(void *const *blocks, size_t count) NUMALLOC_NOEXCEPT;

/* ---- Memory that lies on all usable nodes, page by page in turn, by the kernel's weights where it has
 * some (/sys/kernel/mm/mempolicy/weighted_interleave). Small blocks are packed like others, so the page
 * that holds one is on some node. On huge pages only with NUMALLOC_THP=on. */

/* As malloc(), over all usable nodes. Owned by the caller, freed by free(). Size 0 is the smallest block. */
void *numalloc_malloc_interleaved(size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* As calloc(), over all usable nodes. ENOMEM also for a product that is too large. */
void *numalloc_calloc_interleaved(size_t count, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1, 2);
/* As aligned_alloc(), over all usable nodes: any power of two, else EINVAL; any size. */
void *numalloc_aligned_alloc_interleaved(size_t alignment, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(2) NUMALLOC_ALIGN(1);

/* ---- Partitioned shared memory (JArena). A block lies on the node of its owner, a thread. Threads are
 * numbered in order of their creation, main is 0; a thread can give itself another number (OpenMP's and
 * MPI's fit). A number that no thread has had yet is promised the node on which the placement policy will
 * put its thread, and the thread is then placed there, unless its affinity, set by the program or its
 * user, does not allow that node. The node of a number stands when its thread has ended: a later thread
 * that takes the number is placed with its blocks. EINVAL for negative numbers, and for numbers above
 * 65535 that no living thread has.
 *
 * Where threads are not bound (one node, NUMALLOC_BINDING=none, the static library) a thread gets its
 * number when it first asks for it, its node is where it was when it last used psm_, and numbers that
 * nobody has yet get the nodes in turn. */

/* As malloc(), on the owner's node. Owned by the caller, freed by free() or psm_free(). Size 0 is the smallest block.
 */
void *psm_alloc(size_t bytes, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* As calloc(), on the owner's node. ENOMEM also for a product that is too large. */
void *psm_calloc(size_t count, size_t size, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1, 2);
/* As aligned_alloc(), on the owner's node: any power of two, else EINVAL; any size. */
void *psm_aligned_alloc(size_t alignment, size_t bytes, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(2)
    NUMALLOC_ALIGN(1);
/* The node of an owner: where psm_alloc() puts its blocks. */
int psm_owner_node(int owner) NUMALLOC_NOEXCEPT;
/* The calling thread's number. Does not fail. */
int psm_self(void) NUMALLOC_NOEXCEPT;
/* From now on the calling thread's number is `owner`, 0 to 65535. Where the number's node is known already
 * the thread moves there. Several threads may have one number. Returns 0. */
int psm_register(int owner) NUMALLOC_NOEXCEPT;

/* psm_alloc(): these are the same functions by names that no other library has; psm_ is the paper's. */
void *numalloc_psm_alloc(size_t bytes, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* psm_calloc(), as above. */
void *numalloc_psm_calloc(size_t count, size_t size, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(1, 2);
/* psm_aligned_alloc(), as above. */
void *numalloc_psm_aligned_alloc(size_t alignment, size_t bytes, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(2) NUMALLOC_ALIGN(1);
/* psm_owner_node(), as above. */
int numalloc_psm_owner_node(int owner) NUMALLOC_NOEXCEPT;
/* psm_self(), as above. */
int numalloc_psm_self(void) NUMALLOC_NOEXCEPT;
/* psm_register(), as above. */
int numalloc_psm_register(int owner) NUMALLOC_NOEXCEPT;

/* ---- Heaps of the program's own, each on one node: for an arena, a query, a graph. What is allocated in
 * one can be freed object by object, by free() from any thread, and all at once, without a walk over
 * the objects. realloc() keeps an object in its heap. No object of another heap, and nothing that malloc
 * served, lies on a page of it; a heap takes memory 32 KiB and more at a time, for each size class.
 *
 * Each call takes the heap's own lock: a pair of calls costs a thread about four times what malloc() and
 * free() cost it, and more where many threads use one heap. numalloc_move() refuses such objects (EINVAL).
 */

/* Such a heap; what is in it is the library's own. */
typedef struct numalloc_heap numalloc_heap;

/* A new heap on the node. The caller owns it, until numalloc_heap_destroy(). */
numalloc_heap *numalloc_heap_create(int node) NUMALLOC_NOEXCEPT;
/* A new heap over a set of nodes: interleaved page by page, bound, or preferred, as numalloc_malloc_on_set() says of
 * large blocks, its small objects as well. numalloc_heap_node() is the nearest of them. Big objects of an interleaved
 * or bound heap do not grow in place. EINVAL for NUMALLOC_LOCAL. */
numalloc_heap *numalloc_heap_create_on_set(enum numalloc_policy policy, const numalloc_node_set *set) NUMALLOC_NOEXCEPT;
/* Frees all objects of the heap, and the heap. No thread may use either meanwhile or afterwards. A later
 * free() of such an object ends the program as any invalid free does, unless its memory serves anew. NULL
 * is ignored here; every other function needs a heap. */
void numalloc_heap_destroy(numalloc_heap *heap) NUMALLOC_NOEXCEPT;
/* Frees all objects of the heap, which stays and is empty. No thread may use either meanwhile. */
void numalloc_heap_reset(numalloc_heap *heap) NUMALLOC_NOEXCEPT;

/* As malloc(), in the heap. Freed by free(), or with the heap. Size 0 is the smallest block. ENOMEM also at the limit.
 */
void *numalloc_heap_malloc(numalloc_heap *heap, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(2);
/* As calloc(), in the heap. ENOMEM also for a product that is too large. */
void *numalloc_heap_calloc(numalloc_heap *heap, size_t count, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(2, 3);
/* Any power of two; any size. */
void *numalloc_heap_aligned_alloc(numalloc_heap *heap, size_t alignment,
                                  size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(3) NUMALLOC_ALIGN(2);
/* As realloc(), and the result lies in `heap`, from wherever `p` is. NULL leaves `p` as it was. Size 0
 * frees `p` and returns NULL. */
void *numalloc_heap_realloc(numalloc_heap *heap, void *p, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_RESIZES
    NUMALLOC_SIZE(3);

/* The node that it was created on. Does not fail. */
int numalloc_heap_node(const numalloc_heap *heap) NUMALLOC_NOEXCEPT;
/* Bytes of the objects in use, each rounded up to its size class. Does not fail. */
size_t numalloc_heap_used(const numalloc_heap *heap) NUMALLOC_NOEXCEPT;
/* Bytes that the heap holds for them and for others to come. Does not fail. */
size_t numalloc_heap_held(const numalloc_heap *heap) NUMALLOC_NOEXCEPT;
/* From now on the heap takes no more memory where it would hold more than `bytes`: such calls are ENOMEM. What
 * it holds stays, also above the limit. SIZE_MAX, the beginning: no limit. Does not fail. */
void numalloc_heap_set_limit(numalloc_heap *heap, size_t bytes) NUMALLOC_NOEXCEPT;
/* 1 where `p` points into memory that the heap holds, else 0; any pointer. Exact while nobody frees what is there.
 * Takes no lock. Does not fail. */
int numalloc_heap_contains(const numalloc_heap *heap, const void *p) NUMALLOC_NOEXCEPT;
/* Calls `visit` for each object in use, in no order, with its usable bytes. Until it returns nobody may
 * allocate, resize or free in the heap, `visit` neither. */
void numalloc_heap_visit(const numalloc_heap *heap, void (*visit)(void *object, size_t bytes, void *argument),
                         void *argument) NUMALLOC_NOEXCEPT;
/* Of all memory that the heap holds; see numalloc_pages_of_range(). Nobody may use the heap meanwhile. A page that
 * two parts of the heap share, on systems with pages above 32 KiB, counts twice. */
long long numalloc_pages_of_heap(const numalloc_heap *heap, size_t *on_node, int nodes) NUMALLOC_NOEXCEPT;

/* ---- Placement of what malloc() and its family serve. */

/* Sets it for the calling thread from now on; NULL: as the process (NUMALLOC_MEMORY). New threads begin
 * as the process. What is allocated already stays where it is.
 *   "local"        the node where the thread belongs
 *   "interleave"   all usable nodes, page by page
 *   "preferred:N"  node N
 *   "bind:LIST"    the nearest of the nodes in LIST, such as 0-3,8; spills only to others of these
 * Returns 0. EINVAL for other texts, EINVAL or ENXIO for a node as everywhere. */
int numalloc_set_thread_placement(const char *placement) NUMALLOC_NOEXCEPT;

/* The same by values: `set` is NULL for NUMALLOC_LOCAL, and may be NULL for NUMALLOC_INTERLEAVE over all usable nodes.
 * ENOTSUP for NUMALLOC_INTERLEAVE over fewer, which blocks and heaps can have. */
int numalloc_set_thread_policy(enum numalloc_policy policy, const numalloc_node_set *set) NUMALLOC_NOEXCEPT;
/* The calling thread's own placement. Returns 1; 0, and nothing is written, when it is as the process. Does not fail.
 */
int numalloc_thread_policy(enum numalloc_policy *policy, numalloc_node_set *set) NUMALLOC_NOEXCEPT;

/* Moves the pages of a block of more than 512 KiB, which keeps its address. `p` is what malloc or one of
 * the functions here returned (EINVAL for what is no such block, or smaller: those share pages). Where
 * huge pages are on, one at the block's edge takes its neighbour along. Returns 0; ENOMEM when the node
 * has no room for all of it: some pages may have moved then. EPERM or ENOSYS where the kernel does not
 * allow binding. Freed, the memory goes back to the node it was from. As with realloc(), no other thread may
 * move, resize or free the same block meanwhile. */
int numalloc_move(void *p, int node) NUMALLOC_NOEXCEPT;

/* Moves a thread with its heap: it is bound to the CPUs of the node that its affinity allows (ENXIO when
 * there are none) and allocates there; at once for the calling thread, for another one with its next
 * request that its lists cannot serve. Blocks that it has stay where they are. Where threads are not
 * bound by us, or the kernel refuses to bind one, only the calling thread's memory can be moved (ENOTSUP for
 * others). ESRCH for a thread that is not known. Returns 0. */
int numalloc_rehome_thread(pthread_t thread, int node) NUMALLOC_NOEXCEPT;

/* The same for the calling thread, and the blocks above 512 KiB that it allocated and that live move there too, as
 * numalloc_move() does; smaller ones share pages with other threads' and stay, and so do those of heaps. No other
 * thread may move, resize or free blocks of the caller meanwhile. Returns the bytes of the blocks that are there now;
 * errors as numalloc_rehome_thread(), and nothing has moved then; a block that finds no room stays, and does not count.
 */
long long numalloc_rehome_with_blocks(int node) NUMALLOC_NOEXCEPT;

/* ---- The heap profile (NUMALLOC_PROFILE). */

/* Writes what it has recorded since the start of the process into the file, in pprof's format; NULL: where
 * NUMALLOC_PROFILE_FILE says. Returns 0; ENOTSUP when the profile is off, EINVAL when no file is named or its name is
 * too long, ENOMEM, or the kernel's error for the file. Takes some 16 KiB of the caller's stack. */
int numalloc_profile_dump(const char *path) NUMALLOC_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif

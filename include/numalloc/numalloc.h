/* numalloc: a memory allocator that puts memory on the nodes you name. C99 and C++; link with -lnumalloc (or preload
 * it).
 *
 * Nodes are named by the kernel's numbers, as in /sys/devices/system/node and in numactl; there may be gaps between
 * them. Sizes are in bytes. Any thread may call any function at any time; none is async-signal-safe. All blocks are
 * freed by free() (or psm_free(), which is the same) from any thread, and malloc_usable_size() and realloc() accept
 * them like any other block.
 *
 * realloc() keeps a block's place: a block that must move stays on its node (whether psm_alloc(), a function that names
 * a node, numalloc_move() or another thread put it there), stays interleaved, or stays in its heap. With
 * NUMALLOC_REALLOC_KEEPS_NODE=0 only blocks of a heap keep their place; others go to where the calling thread's
 * malloc() allocates. So do, in the child of a fork, blocks in memory that it has from its parent, until the program
 * names a node. psm_realloc() keeps the node in either case. As with malloc(), if a node is full its block goes to the
 * nearest one that has room.
 *
 * Errors: functions that return a pointer return NULL, all others -1, and set errno:
 *   EINVAL  a node that the machine does not have, an owner that no thread is or can become, an
 *           alignment that is not a power of two
 *   ENXIO   a node that exists but that this process may not use: outside its cpuset or
 *           numactl's --membind, or a node without memory
 *   ENOMEM  no memory. With NUMALLOC_MEMORY_BINDING=strict also if only the node is full; otherwise
 *           the nearest node that has room serves the request
 * On success errno is unchanged.
 *
 * On a machine with one node every function works, but there is no other node. Where the kernel refuses to bind memory
 * (containers), functions that allocate work, and pages lie where they are touched first; numalloc_move() fails.
 *
 * Origins: psm_ is the interface of JArena (partitioned shared memory), the placement functions follow the study of
 * allocators and placement for data analytics on NUMA machines, and the interleaved heap is NUMAlloc's. docs/api.md
 * shows how they are used.
 */
#ifndef NUMALLOC_NUMALLOC_H
#define NUMALLOC_NUMALLOC_H

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "node_set.h"

/* Makes GCC warn if a block is passed to another deallocator than these. */
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

/* As realloc(), but the block stays on its node, or interleaved. If `p` is NULL, allocates on the calling thread's
 * node. On failure `p` is unchanged. Size 0 frees `p` and returns NULL. */
void *psm_realloc(void *p, size_t bytes) NUMALLOC_NOEXCEPT NUMALLOC_RESIZES NUMALLOC_SIZE(2);
/* The same as psm_realloc(), by a name that no other library has. */
void *numalloc_psm_realloc(void *p, size_t bytes) NUMALLOC_NOEXCEPT NUMALLOC_RESIZES NUMALLOC_SIZE(2);
/* Frees a block, even if the caller's free() is another library's. NULL is ignored. */
void psm_free(void *p) NUMALLOC_NOEXCEPT;
/* The same as psm_free(), by a name that no other library has. */
void numalloc_psm_free(void *p) NUMALLOC_NOEXCEPT;

/* ---- The library. */

/* The header's version, as three numbers and as one: 0.1.0 is 100. */
#define NUMALLOC_VERSION_MAJOR 0
#define NUMALLOC_VERSION_MINOR 1 /* the second number */
#define NUMALLOC_VERSION_PATCH 0 /* the third number */
/* All three in one number; a later version has a larger one. */
#define NUMALLOC_VERSION (NUMALLOC_VERSION_MAJOR * 10000 + NUMALLOC_VERSION_MINOR * 100 + NUMALLOC_VERSION_PATCH)

/* The NUMALLOC_VERSION of the library that the program runs with. Does not fail. */
int numalloc_version(void) NUMALLOC_NOEXCEPT;

/* Passes the library's messages to `take` from now on, instead of printing them to stderr; NULL: to stderr again.
 * `take` gets each line without its newline, on the thread that it concerns. That thread may be inside malloc or free,
 * so `take` must call neither. */
void numalloc_set_output(void (*take)(const char *line, void *argument), void *argument) NUMALLOC_NOEXCEPT;

/* Writes the option's value (docs/options.md; name it "purge_delay" or "NUMALLOC_PURGE_DELAY") as the text that would
 * set it, ended with NUL and cut to `bytes`. Returns the length of the whole text. EINVAL if there is no such option.
 */
int numalloc_option_get(const char *name, char *text, size_t bytes) NUMALLOC_NOEXCEPT;
/* Sets an option that may change while the program runs; docs/options.md lists them. Returns 0. EINVAL if there is no
 * such option or it does not accept the text, EPERM if the option is read only once. */
int numalloc_option_set(const char *name, const char *text) NUMALLOC_NOEXCEPT;

/* ---- Statistics: what the heaps hold and did. statistics.def describes each number.
 *
 * Exact for a process at rest, otherwise a picture of slightly different moments. Each call but
 * numalloc_statistics_of_process() walks the heaps of all threads. `bytes` is sizeof the caller's struct: a shorter
 * struct gets its first numbers, a longer one zeros at its end, so that the library and the header may be of different
 * versions. */

/* Instead of a node's number: all nodes together, and the interleaved memory. */
#define NUMALLOC_ALL_NODES (-1)
#define NUMALLOC_INTERLEAVED (-2) /* memory that lies on all nodes, page by page */

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
/* Numbers that are counted once for the process. */
struct numalloc_process_statistics {
#define NUMALLOC_PROCESS_STATISTIC(name, unit, what) unsigned long long name;
#include "statistics.def"
};

/* The statistics of a node, of all nodes together, or of the interleaved memory. Returns 0; EINVAL and ENXIO for a node
 * as everywhere. */
int numalloc_statistics(int node, struct numalloc_node_statistics *into, size_t bytes) NUMALLOC_NOEXCEPT;
/* The statistics of the size class that serves `size` bytes, with those of the class for alignments above 64 bytes
 * whose objects have a size that it serves. Returns the largest size that it serves, so a loop over size + 1 visits all
 * classes. EINVAL for more than 512 KiB (16 bytes less in the hardened library), which has none. */
long long numalloc_statistics_of_class(int node, size_t size, struct numalloc_class_statistics *into,
                                       size_t bytes) NUMALLOC_NOEXCEPT;
/* The statistics of the process. Returns 0, and does not fail. */
int numalloc_statistics_of_process(struct numalloc_process_statistics *into, size_t bytes) NUMALLOC_NOEXCEPT;

/* The format in which all statistics are written. */
enum numalloc_format {
    NUMALLOC_TEXT, /* to be read by people */
    NUMALLOC_JSON  /* one line of JSON */
};
/* Writes all statistics into `text`, ended with NUL and cut to `bytes`. Returns the length of the whole, which may have
 * changed by the next call. EINVAL for another format. */
long long numalloc_statistics_text(enum numalloc_format format, char *text, size_t bytes) NUMALLOC_NOEXCEPT;
/* Appends all statistics to a file, and creates it if necessary. "%p" in the name is the process ID. JSON if the name
 * ends in .json, otherwise text. "exit" is stderr. Returns 0, or -1 with the error of open(2) or write(2). */
int numalloc_statistics_write(const char *file) NUMALLOC_NOEXCEPT;

/* ---- The machine, as this process may use it. */

/* The number of nodes with memory that this process may use; at least 1. Does not fail. */
int numalloc_node_count(void) NUMALLOC_NOEXCEPT;

/* Writes the numbers of these nodes, ascending, at most `capacity` of them, into `nodes` (which may be NULL if capacity
 * is 0). Returns how many there are. Does not fail. */
int numalloc_nodes(int *nodes, int capacity) NUMALLOC_NOEXCEPT;

/* The distance between two usable nodes, as the firmware reports it: 10 within a node, larger for farther ones, 20 if
 * it reports none. */
int numalloc_distance(int from, int to) NUMALLOC_NOEXCEPT;

/* Writes the CPUs of any node of the machine (EINVAL for others) into `cpu_set`, a cpu_set_t of `bytes` bytes. Returns
 * how many there are: 0 for a node with memory only. EINVAL if a CPU does not fit. Reads a file in /sys; EIO if it
 * cannot be read. Without /sys there is one node, with the CPUs that the process may use; otherwise the process may be
 * allowed fewer CPUs. */
int numalloc_node_cpus(int node, size_t bytes, void *cpu_set) NUMALLOC_NOEXCEPT;

/* Bytes of a usable node that can be allocated without taking them from programs: free memory and clean cache. Up to
 * 100 ms old, so it may be called often. EIO if the system does not report it. */
long long numalloc_node_free_memory(int node) NUMALLOC_NOEXCEPT;

/* The node of the memory at `p`. For most blocks of this library the answer takes a few instructions: the node of the
 * block's heap. The pages are or will be there, unless that node was full or the kernel refuses to bind (or, with
 * NUMALLOC_MEMORY=bind:, refuses set_mempolicy_home_node). For blocks that the kernel may move (of 16 MiB and
 * more, with AutoNUMA), and for what the child of a fork has from its parent, it asks the kernel where the page is, and
 * answers with the heap's node if the kernel does not tell. It asks, too, for interleaved blocks, for other memory, and
 * for blocks above 512 KiB while one of the process is over a set of nodes or was moved by numalloc_move(): ENOENT or
 * EFAULT if the page was never written, EPERM or ENOSYS if the kernel refuses (on a machine with one node the result is
 * then that node). */
int numalloc_node_of(const void *p) NUMALLOC_NOEXCEPT;

/* ---- Where memory lies: pages by node, as the kernel reports them now. Each call adds to on_node[n] the pages that
 * lie on node n, for n below `nodes`, so several calls add up. The caller owns and zeroes `on_node`, which may be NULL
 * if `nodes` is 0. Pages are the system's (sysconf(_SC_PAGESIZE)), also in huge pages; a page that the range touches in
 * part counts whole. Pages that were never written, are swapped out or are not mapped do not count. Returns the number
 * of pages on any node; 0 for size 0.
 *
 * The numbers come from move_pages(2) without target nodes, 512 pages a call; if the kernel refuses it (containers) the
 * result is -1 with EPERM or ENOSYS, and nothing was added unless the refusal began during the call. On a machine of
 * one node they come from mincore(2), and a page that was only read may count.
 */

/* The pages of `bytes` bytes from `p`, any memory of the process. EINVAL if the range exceeds the address space. */
long long numalloc_pages_of_range(const void *p, size_t bytes, size_t *on_node, int nodes) NUMALLOC_NOEXCEPT;
/* The pages of all usable bytes of a block. EINVAL if `p` is not a block of this library in use. */
long long numalloc_pages_of_block(const void *p, size_t *on_node, int nodes) NUMALLOC_NOEXCEPT;

/* The node of the CPU on which the calling thread runs now. Without a system call on the usual path, but with one if
 * the process may use the memory of one node of several. */
int numalloc_current_node(void) NUMALLOC_NOEXCEPT;

/* ---- Memory of a node. A small block shares pages only with blocks of the same node, and is not padded to a page. */

/* As malloc(), on the node. Owned by the caller, freed by free(). Size 0 is treated as 1. */
void *numalloc_malloc_on_node(size_t size, int node) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* As calloc(), on the node. ENOMEM also if the product overflows. */
void *numalloc_calloc_on_node(size_t count, size_t size, int node) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(1, 2);
/* As realloc(), but the result lies on the node: a block of another node is copied there even if it could stay. An
 * object of a heap on that node stays in its heap; one of a heap on another node leaves it. On failure `p` is
 * unchanged. Size 0 frees `p` and returns NULL. */
void *numalloc_realloc_on_node(void *p, size_t size, int node) NUMALLOC_NOEXCEPT NUMALLOC_RESIZES NUMALLOC_SIZE(2);
/* As aligned_alloc(), on the node: any power of two, any size. */
void *numalloc_aligned_alloc_on_node(size_t alignment, size_t size, int node) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(2) NUMALLOC_ALIGN(1);

/* ---- Sets of nodes (node_set.h). Functions that take one fail with EINVAL for an empty set and for nodes that the
 * machine does not have, and with ENXIO for nodes that this process may not use. */

/* Parses libnuma's syntax: "0-3,8", "all" (all usable nodes), "" (none); "!2" is all usable nodes but 2, and "+0-1"
 * counts the usable nodes from 0. Returns 0. EINVAL for another text, EINVAL or ENXIO for a node as above; then `set`
 * is unchanged. */
int numalloc_node_set_parse(const char *text, numalloc_node_set *set) NUMALLOC_NOEXCEPT;
/* Writes the set as "0-3,8", ended with NUL and cut to `bytes`. Returns the length of the whole text. Does not fail. */
int numalloc_node_set_print(const numalloc_node_set *set, char *text, size_t bytes) NUMALLOC_NOEXCEPT;

/* Kinds of nodes; only nodes that this process may use belong to them. */
enum numalloc_node_kind {
    NUMALLOC_NODES_USABLE,         /* all of them */
    NUMALLOC_NODES_WITH_CPUS,      /* threads can run there */
    NUMALLOC_NODES_MEMORY_ONLY,    /* without CPUs: CXL, HBM in its flat mode, persistent memory */
    NUMALLOC_NODES_MOST_BANDWIDTH, /* with the largest read_bandwidth that the kernel reports, such as HBM */
    NUMALLOC_NODES_SLOWER_TIERS    /* not in the kernel's first memory tier, such as CXL and persistent memory */
};
/* Stores the usable nodes of a kind in `set`, by the kernel's attributes in /sys at this moment. Returns how many there
 * are, 0 for none. ENODATA if the kernel does not report bandwidth, tiers or CPUs, EINVAL for another kind. Reads some
 * files. */
int numalloc_node_set_of_kind(enum numalloc_node_kind kind, numalloc_node_set *set) NUMALLOC_NOEXCEPT;

/* How memory is placed on a set of nodes. */
enum numalloc_policy {
    NUMALLOC_LOCAL,      /* the thread's home node; takes no set */
    NUMALLOC_INTERLEAVE, /* all nodes of the set in turn */
    NUMALLOC_BIND,       /* the nearest node of the set whose heap has address space left, and no other */
    NUMALLOC_PREFER      /* the nearest node of the set; if its memory is full, the nearest other one */
};

/* A block over a set of nodes; "nearest" is nearest to the calling thread. An interleaved block above 512 KiB lies on
 * the nodes page by page; a smaller one lies whole on one node, and the next one on the next node. Freed by free().
 * realloc() keeps the placement of a large block; one that becomes small stays on one of the nodes. EINVAL for
 * NUMALLOC_LOCAL; ENOMEM also if all heaps of a NUMALLOC_BIND are full. The kernel finds pages when they are touched,
 * so if no node of a NUMALLOC_BIND has any left then, a large block wakes its OOM killer, and a small one gets a page
 * of another node. If the kernel refuses to bind, a large block lies where it is touched first. */
void *numalloc_malloc_on_set(size_t size, enum numalloc_policy policy,
                             const numalloc_node_set *set) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* The same by weights: weights[i], 1 to 255 (EINVAL for 0), is that of the i-th node of the set, in order of number.
 * Each node holds its share of a large block, in stripes of pages that are as short as about 512 mappings allow. Small
 * blocks go to the nodes in turn, weights[i] blocks to node i. */
void *numalloc_malloc_weighted(size_t size, const numalloc_node_set *set,
                               const unsigned char *weights) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);

/* ---- Sizes, blocks in place, many blocks at once. For blocks of every placement. */

/* The usable bytes of a block that malloc(size) would return: requesting this many uses no more memory. Size 0 is
 * treated as 1; the result is 0 for a size that no block can have. Does not fail. A block of more than 32 KiB may
 * have up to 1.5 times as many, because malloc reuses a free one before it touches new pages. A guarded block
 * (NUMALLOC_GUARDED) has exactly the requested bytes. So request the good size if you want to use all of it. */
size_t numalloc_good_size(size_t size) NUMALLOC_NOEXCEPT;
/* Makes a block longer or shorter in place, as near to `size` bytes as possible, and moves nothing. Returns the usable
 * bytes afterwards, which are fewer than `size` if the block cannot grow: one of up to 512 KiB keeps its size, and so
 * does any while the heap profile is on. Does not fail. `p` is a block in use; size 0
 * is treated as 1. No other thread may move, resize or free the block during the call. */
size_t numalloc_resize_in_place(void *p, size_t size) NUMALLOC_NOEXCEPT;
/* Allocates `count` blocks as malloc(size) does and writes them to `blocks`; they are owned like any other. Returns the
 * number of blocks: fewer than `count`, with ENOMEM, if memory runs out; those are valid. */
size_t numalloc_malloc_batch(size_t size, void **blocks, size_t count) NUMALLOC_NOEXCEPT;
/* Calls free() for each block; NULL among them is ignored. */
void numalloc_free_batch(void *const *blocks, size_t count) NUMALLOC_NOEXCEPT;

/* ---- Interleaved memory. Its pages lie on all usable nodes in turn, by the kernel's weights if it has some
 * (/sys/kernel/mm/mempolicy/weighted_interleave). Small blocks are packed like others, so the page that holds one is on
 * one of the nodes. On huge pages only with NUMALLOC_THP=on. */

/* As malloc(), over all usable nodes. Owned by the caller, freed by free(). Size 0 is treated as 1. */
void *numalloc_malloc_interleaved(size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* As calloc(), over all usable nodes. ENOMEM also if the product overflows. */
void *numalloc_calloc_interleaved(size_t count, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1, 2);
/* As aligned_alloc(), over all usable nodes: any power of two, otherwise EINVAL; any size. */
void *numalloc_aligned_alloc_interleaved(size_t alignment, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(2) NUMALLOC_ALIGN(1);

/* ---- Partitioned shared memory (JArena). A block lies on the node of its owner, a thread. Threads are numbered in
 * order of creation, main is 0; a thread can choose another number (for example that of OpenMP or MPI). For a number
 * that no thread has had yet, the first call promises the node on which the placement policy will put its thread. The
 * thread is then placed there, unless its affinity, set by the program or its user, excludes that node. A number keeps
 * its node when its thread ends: a later thread with the number is placed with its blocks. EINVAL for negative numbers,
 * and for numbers above 65535 that no living thread has.
 *
 * If threads are not bound (one node, NUMALLOC_BINDING=none, the static library), a thread gets its number when it
 * first asks for it, its node is where it last used psm_, and numbers that no thread has yet get the nodes in turn.
 */

/* As malloc(), on the owner's node. Owned by the caller, freed by free() or psm_free(). Size 0 is treated as 1. */
void *psm_alloc(size_t bytes, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1);
/* As calloc(), on the owner's node. ENOMEM also if the product overflows. */
void *psm_calloc(size_t count, size_t size, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(1, 2);
/* As aligned_alloc(), on the owner's node: any power of two, otherwise EINVAL; any size. */
void *psm_aligned_alloc(size_t alignment, size_t bytes, int owner) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(2)
    NUMALLOC_ALIGN(1);
/* The node of an owner, on which psm_alloc() puts its blocks. */
int psm_owner_node(int owner) NUMALLOC_NOEXCEPT;
/* The calling thread's number. Does not fail. */
int psm_self(void) NUMALLOC_NOEXCEPT;
/* Sets the calling thread's number to `owner`, 0 to 65535. If that number has a node already, the thread moves there.
 * Several threads may have one number. Returns 0. */
int psm_register(int owner) NUMALLOC_NOEXCEPT;

/* The same as psm_alloc(). This and the next functions have names that no other library has; psm_ is the paper's. */
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

/* ---- Heaps of the program's own, each on one node: for an arena, a query, a graph. Objects of a heap can be freed one
 * by one, by free() from any thread, or all at once, without a walk over them. realloc() keeps an object in its heap. A
 * heap shares no page with other heaps or with malloc(); it takes memory 32 KiB or more at a time, for each size class.
 *
 * Each call takes the heap's own lock, so it costs more than malloc() and free() do, above all if many threads use one
 * heap. numalloc_move() refuses such objects (EINVAL). */

/* A heap; its contents are private to the library. */
typedef struct numalloc_heap numalloc_heap;

/* Makes a heap on the node. The caller owns it until numalloc_heap_destroy(). */
numalloc_heap *numalloc_heap_create(int node) NUMALLOC_NOEXCEPT;
/* Makes a heap over a set of nodes: interleaved page by page, bound, or preferred, as numalloc_malloc_on_set() places
 * large blocks, but for small objects too. numalloc_heap_node() is the nearest of the nodes. Big objects of an
 * interleaved or bound heap do not grow in place. EINVAL for NUMALLOC_LOCAL. */
numalloc_heap *numalloc_heap_create_on_set(enum numalloc_policy policy, const numalloc_node_set *set) NUMALLOC_NOEXCEPT;
/* Frees all objects of the heap, and the heap. No thread may use either during or after the call. A later free() of
 * such an object ends the program as any invalid free does, unless its memory is in use again. NULL is ignored here;
 * all other functions need a heap. */
void numalloc_heap_destroy(numalloc_heap *heap) NUMALLOC_NOEXCEPT;
/* Frees all objects of the heap, which stays and is empty. No thread may use either during the call. */
void numalloc_heap_reset(numalloc_heap *heap) NUMALLOC_NOEXCEPT;

/* As malloc(), in the heap. Freed by free(), or with the heap. Size 0 is treated as 1. ENOMEM also at the limit. */
void *numalloc_heap_malloc(numalloc_heap *heap, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(2);
/* As calloc(), in the heap. ENOMEM also if the product overflows. */
void *numalloc_heap_calloc(numalloc_heap *heap, size_t count, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES
    NUMALLOC_SIZE(2, 3);
/* As aligned_alloc(), in the heap: any power of two, any size. */
void *numalloc_heap_aligned_alloc(numalloc_heap *heap, size_t alignment,
                                  size_t size) NUMALLOC_NOEXCEPT NUMALLOC_ALLOCATES NUMALLOC_SIZE(3) NUMALLOC_ALIGN(2);
/* As realloc(), but the result lies in `heap`, wherever `p` is from. On failure `p` is unchanged. Size 0 frees `p` and
 * returns NULL. */
void *numalloc_heap_realloc(numalloc_heap *heap, void *p, size_t size) NUMALLOC_NOEXCEPT NUMALLOC_RESIZES
    NUMALLOC_SIZE(3);

/* The node that the heap was created on. Does not fail. */
int numalloc_heap_node(const numalloc_heap *heap) NUMALLOC_NOEXCEPT;
/* Bytes of the objects in use, each rounded up to its size class. Does not fail. */
size_t numalloc_heap_used(const numalloc_heap *heap) NUMALLOC_NOEXCEPT;
/* Bytes that the heap holds for its objects and for future ones. Does not fail. */
size_t numalloc_heap_held(const numalloc_heap *heap) NUMALLOC_NOEXCEPT;
/* Sets a limit: the heap takes no more memory if it would then hold more than `bytes`, and the call fails with ENOMEM.
 * The heap keeps what it holds, even above the limit. SIZE_MAX, the initial value: no limit. Does not fail. */
void numalloc_heap_set_limit(numalloc_heap *heap, size_t bytes) NUMALLOC_NOEXCEPT;
/* 1 if `p`, any pointer, points into memory that the heap holds, otherwise 0. Exact unless that memory is freed at the
 * same time. Takes no lock. Does not fail. */
int numalloc_heap_contains(const numalloc_heap *heap, const void *p) NUMALLOC_NOEXCEPT;
/* Calls `visit` for each object in use, in no particular order, with its usable bytes. Until it returns no thread may
 * allocate, resize or free in the heap, and neither may `visit`. */
void numalloc_heap_visit(const numalloc_heap *heap, void (*visit)(void *object, size_t bytes, void *argument),
                         void *argument) NUMALLOC_NOEXCEPT;
/* The pages of all memory that the heap holds; see numalloc_pages_of_range(). No thread may use the heap during the
 * call. On systems with pages above 32 KiB, a page that two parts of the heap share counts twice. */
long long numalloc_pages_of_heap(const numalloc_heap *heap, size_t *on_node, int nodes) NUMALLOC_NOEXCEPT;

/* ---- Placement of what malloc() and its family serve. */

/* Sets the placement of the calling thread from now on; NULL: that of the process (NUMALLOC_MEMORY), which new threads
 * begin with. Existing blocks stay where they are.
 *   "local"        the thread's home node
 *   "interleave"   all usable nodes, page by page
 *   "preferred:N"  node N
 *   "bind:LIST"    the nearest of the nodes in LIST, such as 0-3,8. If its heap has no addresses left, that of another
 *                  of these; if the node has no memory left, the process's setting decides
 * Returns 0. EINVAL for other texts, EINVAL or ENXIO for a node as everywhere. */
int numalloc_set_thread_placement(const char *placement) NUMALLOC_NOEXCEPT;

/* The same by values: `set` is NULL for NUMALLOC_LOCAL, and may be NULL for NUMALLOC_INTERLEAVE over all usable nodes.
 * ENOTSUP for NUMALLOC_INTERLEAVE over fewer nodes, which only blocks and heaps can have. */
int numalloc_set_thread_policy(enum numalloc_policy policy, const numalloc_node_set *set) NUMALLOC_NOEXCEPT;
/* The calling thread's own placement. Returns 1; or 0, with nothing written, if it has that of the process. Does not
 * fail. */
int numalloc_thread_policy(enum numalloc_policy *policy, numalloc_node_set *set) NUMALLOC_NOEXCEPT;

/* Moves the pages of a block of more than 512 KiB, which keeps its address. `p` was returned by malloc or a function of
 * this header (EINVAL if it is no such block, or smaller: small blocks share pages). If huge pages are on, one at the
 * edge of the block moves its neighbour too. Returns 0; ENOMEM if the node has no room for all of it: some pages may
 * have moved then. EPERM or ENOSYS if the kernel does not allow binding. When the block is freed its memory returns to
 * the node that it came from. As with realloc(), no other thread may move, resize or free the same block during the
 * call. */
int numalloc_move(void *p, int node) NUMALLOC_NOEXCEPT;

/* Moves a thread with its heap: binds it to those CPUs of the node that its affinity allows (ENXIO if there are none),
 * and lets it allocate there; the calling thread at once, another one with its next request that its lists cannot
 * serve. Its blocks stay where they are. If the library does not bind threads, or the kernel refuses to bind this one,
 * only the calling thread's memory can be moved (ENOTSUP for others). ESRCH if the thread is not known. Returns 0. */
int numalloc_rehome_thread(pthread_t thread, int node) NUMALLOC_NOEXCEPT;

/* The same for the calling thread, and moves its live blocks above 512 KiB too, as numalloc_move() does. Smaller blocks
 * share pages with those of other threads and stay, and so do those of heaps. No other thread may move, resize or free
 * blocks of the caller during the call. Returns the bytes of the blocks that are on the node now. Errors as of
 * numalloc_rehome_thread(), with nothing moved; a block that finds no room stays, and does not count. */
long long numalloc_rehome_with_blocks(int node) NUMALLOC_NOEXCEPT;

/* ---- The heap profile (NUMALLOC_PROFILE). */

/* Writes the profile since the start of the process into the file, in pprof's format; NULL: the file of
 * NUMALLOC_PROFILE_FILE. Returns 0; ENOTSUP if the profile is off, EINVAL if no file is named or its name is too long,
 * ENOMEM, or the kernel's error for the file. Uses about 16 KiB of the caller's stack. */
int numalloc_profile_dump(const char *path) NUMALLOC_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif

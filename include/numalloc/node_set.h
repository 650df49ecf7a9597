/* A set of nodes by the kernel's numbers, for numalloc.h, which includes this. A plain value of 128 bytes: zero is the
 * empty set, it is copied by assignment and owns nothing. The functions here do not fail and ignore numbers that no
 * node can have; several threads may read one set at once. */
#ifndef NUMALLOC_NODE_SET_H
#define NUMALLOC_NODE_SET_H

/* The kernel's own limit: node numbers are below it. */
#define NUMALLOC_MOST_NODES 1024

/* A set of nodes: node n is bit n % 64 of word n / 64. */
typedef struct numalloc_node_set {
    unsigned long long word[NUMALLOC_MOST_NODES / 64]; /* the lowest nodes first */
} numalloc_node_set;

/* 1 where the node is in the set, else 0. */
static inline int numalloc_node_set_has(const numalloc_node_set *set, int node) {
    return node >= 0 && node < NUMALLOC_MOST_NODES && (set->word[node / 64] >> (node % 64) & 1) != 0;
}
/* Adds the node; no effect if the set has it. */
static inline void numalloc_node_set_add(numalloc_node_set *set, int node) {
    if (node >= 0 && node < NUMALLOC_MOST_NODES) set->word[node / 64] |= 1ULL << (node % 64);
}
/* Takes the node out; no effect if the set lacks it. */
static inline void numalloc_node_set_remove(numalloc_node_set *set, int node) {
    if (node >= 0 && node < NUMALLOC_MOST_NODES) set->word[node / 64] &= ~(1ULL << (node % 64));
}
/* How many nodes are in the set. */
static inline int numalloc_node_set_count(const numalloc_node_set *set) {
    int count = 0;
    for (int node = 0; node < NUMALLOC_MOST_NODES; node++) count += numalloc_node_set_has(set, node);
    return count;
}

#endif

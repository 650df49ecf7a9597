/* Two MPI ranks exchange large blocks that are allocated, resized and freed between the sends, so that the same
   addresses are sent again with other pages. Every received byte is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rounds = 10, several = 4 };

static int rank;
static unsigned long sum, mistakes;

/* From 12 KiB to 12 MiB. */
static size_t size_of(int round, int which) {
    size_t most = (size_t)48 << 10 << round % 5 * 2;
    return most / (unsigned)(which + 1) + (unsigned)round * 4099u;
}

/* The contents depend on the sender, the round, the block and the offset. */
static unsigned char byte_of(int sender, int round, int which, size_t at) {
    return (unsigned char)((at * 2654435761u >> 7) + (unsigned)(sender * 101 + round * 17 + which * 5));
}

static void fill(unsigned char *block, size_t size, int round, int which) {
    if (!block) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < size; i++) block[i] = byte_of(rank, round, which, i);
}

static void check(const unsigned char *block, size_t size, int round, int which) {
    for (size_t i = 0; i < size; i++) {
        mistakes += block[i] != byte_of(!rank, round, which, i);
        sum = sum * 31 + block[i];
    }
}

/* All sends and receives of a round are pending at once. The sent blocks are resized before the send. */
static void exchange(int round) {
    unsigned char *out[several], *in[several];
    MPI_Request requests[2 * several];
    for (int i = 0; i < several; i++) {
        size_t size = size_of(round, i);
        out[i] = malloc(size / 2);
        in[i] = calloc(1, size);
        fill(out[i], size / 2, round + 1, i); /* realloc() then has pages to move */
        out[i] = realloc(out[i], size);
        fill(out[i], size, round, i);
        if (!in[i]) MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Irecv(in[i], (int)size, MPI_BYTE, !rank, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(out[i], (int)size, MPI_BYTE, !rank, i, MPI_COMM_WORLD, &requests[several + i]);
    }
    MPI_Waitall(2 * several, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < several; i++) {
        check(in[i], size_of(round, i), round, i);
        free(out[i]);
        free(in[i]);
    }
}

/* Sends and receives in two blocks, resizes both, and does so again. */
static void exchange_resized(int round) {
    size_t size = size_of(round, 0), more = size * 3;
    unsigned char *block = malloc(size), *back = malloc(size);
    fill(block, size, round, 9);
    if (!back) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Sendrecv(block, (int)size, MPI_BYTE, !rank, 10, back, (int)size, MPI_BYTE, !rank, 10, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check(back, size, round, 9);
    back = realloc(back, more);
    block = realloc(block, more);
    fill(block, more, round, 11);
    if (!back) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Sendrecv(block, (int)more, MPI_BYTE, !rank, 11, back, (int)more, MPI_BYTE, !rank, 11, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check(back, more, round, 11);
    free(block);
    free(back);
}

/* One-sided: the window is a malloc'ed block that exists for one round. */
static void put(int round) {
    size_t size = size_of(round, 1);
    unsigned char *window = calloc(1, size), *block = malloc(size);
    fill(block, size, round, 13);
    if (!window) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Win handle;
    MPI_Win_create(window, (MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &handle);
    MPI_Win_fence(0, handle);
    MPI_Put(block, (int)size, MPI_BYTE, !rank, 0, (int)size, MPI_BYTE, handle);
    MPI_Win_fence(0, handle);
    check(window, size, round, 13);
    MPI_Win_free(&handle);
    free(window);
    free(block);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int round = 0; round < rounds; round++) {
        exchange(round);
        exchange_resized(round);
        put(round);
    }
    unsigned long mine[2] = {sum, mistakes}, all[4];
    MPI_Gather(mine, 2, MPI_UNSIGNED_LONG, all, 2, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("sums: %lu %lu, wrong bytes: %lu\n", all[0], all[2], all[1] + all[3]);
    MPI_Finalize();
    return mistakes != 0;
}

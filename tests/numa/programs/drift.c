/* Whether the kernel moves pages to the thread that uses them (AutoNUMA): main writes memory on one node, then
 * reads it on another until a quarter of it has moved or the time is up. Prints how many pages are where.
 *   drift FROM_CPU TO_CPU MEGABYTES SECONDS */
#include "pages.h"

int main(int count, char **words) {
    if (count != 5) die("usage: drift FROM_CPU TO_CPU MEGABYTES SECONDS");
    size_t bytes = number(words[3], "MEGABYTES") << 20, pages = bytes / PAGE;
    double begin = seconds(), end = begin + (double)number(words[4], "SECONDS");
    pin_to_cpu((int)number(words[1], "FROM_CPU"));
    int from = current_node();
    char *block = malloc(bytes);
    if (!block) die("malloc");
    memset(block, 1, bytes);
    pin_to_cpu((int)number(words[2], "TO_CPU"));
    unsigned long sum = 0, moved;
    do {
        for (int round = 0; round < 20; round++)
            for (size_t at = 0; at < bytes; at += 64) sum += (unsigned char)block[at];
        moved = 0;
        for (size_t page = 0; page < pages; page += 16) {
            int node = node_of(block + page * PAGE);
            moved += node >= 0 && node != from;
        }
    } while (4 * 16 * moved < pages && seconds() < end);
    printf("{\"moved\":%lu,\"seconds\":%.1f,\"sum\":%lu}\n", moved, seconds() - begin, sum);
    return 0;
}

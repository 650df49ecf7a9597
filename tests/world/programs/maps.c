/* maps COUNT: so many mappings are used up, or all that there are, and malloc goes on with what is left. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int count, char **words) {
    long many = count > 1 ? atol(words[1]) : 70000;
    char *area = mmap(NULL, 140000ul * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) return 2;
    for (long i = 0; i < many && i < 70000; i++)
        if (mprotect(area + i * 8192, 4096, PROT_READ)) break;
    static char *kept[20000];
    unsigned long failed = 0, x = 1;
    for (int i = 0; i < 200000; i++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        unsigned long place = (x >> 33) % 20000, size = 16 + (x >> 40) % (i & 255 ? 1000 : 400000);
        free(kept[place]);
        kept[place] = malloc(size);
        if (kept[place]) kept[place][0] = kept[place][size - 1] = 1;
        else failed++;
    }
    for (int i = 0; i < 20000; i++) free(kept[i]);
    puts(failed < 100000 ? "served" : "refused");
    return 0;
}

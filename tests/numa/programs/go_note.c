/* A program with the note of Go's linker, and so perhaps with a runtime that starts children by itself: no thread is
 * bound. */
#include "check.h"

__asm__(
    ".pushsection .note.go.buildid,\"a\",%note\n"
    ".long 4, 8, 4\n"
    ".ascii \"Go\\0\\0\"\n"
    ".ascii \"build-id\"\n"
    ".popsection\n");

static char at_first[4096];

static void read_mask(char *mask) {
    char line[4096];
    FILE *file = fopen("/proc/thread-self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Cpus_allowed_list: %4095s", mask);
    fclose(file);
}

static void look(const char *who) {
    char mask[4096] = "";
    read_mask(mask);
    expect(!strcmp(mask, at_first), "%s: the kernel's mask is %s, not %s", who, mask, at_first);
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    free(block);
}

static void *work(void *unused) {
    (void)unused;
    look("a thread");
    return NULL;
}

int main(void) {
    read_mask(at_first);
    pthread_t thread[4];
    for (int t = 0; t < 4; t++)
        if (pthread_create(&thread[t], NULL, work, NULL) != 0) die("cannot start a thread");
    look("main");
    for (int t = 0; t < 4; t++) pthread_join(thread[t], NULL);
    return verdict();
}

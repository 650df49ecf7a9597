/* Teams of threads that allocate for each other, and children of the forked team's master. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    enum { many = 60000 };
    static char *blocks[many];
    unsigned long sum = 0;
    for (int round = 0; round < 5; round++) {
#pragma omp parallel for schedule(dynamic, 100)
        for (int i = 0; i < many; i++) {
            blocks[i] = malloc((unsigned)i * 7919u % 900 + 1);
            blocks[i][0] = (char)i;
        }
#pragma omp parallel for reduction(+ : sum) schedule(static)
        for (int i = 0; i < many; i++) {
            sum += (unsigned char)blocks[many - 1 - i][0];
            free(blocks[many - 1 - i]);
        }
        pid_t child = fork();
        if (child == 0) {
            free(calloc(1000, 100));
            _exit(7);
        }
        int status;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 7) return 1;
    }
    printf("%lu\n", sum);
    return 0;
}

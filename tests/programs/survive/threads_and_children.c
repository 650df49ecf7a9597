// Starts a thread, a child, and a program.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void* work(void* unused) {
    for (int i = 0; i < 100000; ++i) free(malloc(i % 5000));
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
    work(NULL);
    pthread_join(thread, NULL);
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        work(NULL);
        execl("/bin/true", "true", (char*)NULL);
        _exit(2);
    }
    if (waitpid(child, &status, 0) != child || status != 0) return 3;
    puts("a thread, a child and a program");
    return 0;
}

/* connections CLIENTS SECONDS: a server with a thread for each connection. Each connection sends some requests, closes,
 * and another is opened: threads start and end all the time. Its first request starts a child, which answers with its
 * mask. */
#include "own_pages.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { REQUESTS = 100, MOST_CLIENTS = 64 };
extern char **environ;
static struct own own; /* of all connections that have ended */
static struct sockaddr_un address = {AF_UNIX, "connections.socket"};
static double until;

static void answer_with_mask(int to) {
    char *command[] = {"grep", "Cpus_allowed_list", "/proc/self/status", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    pid_t child;
    if (posix_spawnp(&child, command[0], &actions, NULL, command, environ) != 0) die("cannot start %s", command[0]);
    waitpid(child, NULL, 0);
    posix_spawn_file_actions_destroy(&actions);
}

static void *serve(void *argument) {
    int connection = (int)(intptr_t)argument;
    struct own mine = {0};
    for (char request; read(connection, &request, 1) == 1;) {
        if (request == 'm') {
            answer_with_mask(connection);
            continue;
        }
        for (int n = 0; n < 20; n++) allocate_and_compute(&mine);
        if (write(connection, &request, 1) != 1) break;
    }
    add_own_pages(&mine, &own);
    close(connection);
    return NULL;
}

static void *accept_all(void *argument) {
    int listener = (int)(intptr_t)argument;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        pthread_t thread;
        if (connection < 0 || pthread_create(&thread, &detached, serve, (void *)(intptr_t)connection) != 0)
            die("accept");
    }
}

/* One client: a process of its own, so that only connections are threads of the server. */
static void ask(int asks_for_mask) {
    char answer[128];
    do {
        int connection = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) die("connect: %s", strerror(errno));
        if (asks_for_mask) {
            ssize_t got = write(connection, "m", 1) == 1 ? read(connection, answer, sizeof answer) : 0;
            say("%.*s", (int)got, answer);
        }
        for (int n = 0; n < REQUESTS && seconds() < until && !asks_for_mask; n++)
            if (write(connection, "w", 1) != 1 || read(connection, answer, 1) != 1) die("no answer");
        close(connection);
    } while (!asks_for_mask && seconds() < until);
    _exit(0);
}

static void run_clients(int clients, int ask_for_masks) {
    for (int c = 0; c < clients; c++)
        if (fork() == 0) ask(ask_for_masks);
    for (int c = 0; c < clients; c++) wait(NULL);
}

int main(int count, char **words) {
    int clients = count == 3 ? atoi(words[1]) : 0;
    if (clients < 1 || clients > MOST_CLIENTS)
        die("usage: connections CLIENTS SECONDS, with 1 to %d clients", MOST_CLIENTS);
    unlink(address.sun_path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, MOST_CLIENTS) != 0)
        die("bind");
    pid_t loader = fork();
    if (loader == 0) {
        say("begin %d clients\n", clients);
        until = seconds() + strtod(words[2], NULL);
        run_clients(clients, 0);
        say("end\n");
        run_clients(1, 1);
        _exit(0);
    }
    pthread_t acceptor;
    if (pthread_create(&acceptor, NULL, accept_all, (void *)(intptr_t)listener) != 0) die("cannot start a thread");
    int status;
    waitpid(loader, &status, 0);
    char name[32];
    snprintf(name, sizeof name, "%d clients", clients);
    print_own_pages(name, &own);
    return status != 0;
}

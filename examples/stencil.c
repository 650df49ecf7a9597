/* Heat on a square plate with OpenMP. The plate is cut into strips of rows, one for each thread, and each
 * strip lies on its thread's node, although the main thread allocates and fills all of them. The result
 * is compared with the exact one: a wave that decays by a known factor in each step. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "pages.h"

enum { N = 510, STEPS = 60 };

static const double PI = 3.14159265358979323846, ALPHA = 0.2;

/* A strip has a row of its neighbours' above and below, and a border of zeros left and right. */
struct strip {
    int first, rows;
    double *now, *next;
};

static double start_value(int row, int column) { return sin(PI * row / (N + 1)) * sin(2 * PI * column / (N + 1)); }

static double *at(double *strip, int row) { return strip + (size_t)row * (N + 2); }

static void step(struct strip *s) {
    for (int r = 1; r <= s->rows; r++) {
        const double *up = at(s->now, r - 1), *here = at(s->now, r), *down = at(s->now, r + 1);
        double *out = at(s->next, r);
        for (int c = 1; c <= N; c++)
            out[c] = here[c] + ALPHA * (up[c] + down[c] + here[c - 1] + here[c + 1] - 4 * here[c]);
    }
    double *t = s->now;
    s->now = s->next;
    s->next = t;
}

static void copy_row(double *to, const double *from) {
    for (int c = 0; c < N + 2; c++) to[c] = from[c];
}

int main(void) {
    int threads = omp_get_max_threads();
    struct strip *strips = calloc((size_t)threads, sizeof *strips);
    struct pages pages = {{0}};
    double worst = 0;

    /* An OpenMP thread's number becomes the owner's number. */
#pragma omp parallel num_threads(threads)
    if (psm_register(omp_get_thread_num()) != 0) abort();

    for (int t = 0, first = 1; t < threads; t++) {
        int rows = N / threads + (t < N % threads);
        strips[t] = (struct strip){first, rows, psm_calloc((size_t)(rows + 2) * (N + 2), sizeof(double), t),
                                   psm_calloc((size_t)(rows + 2) * (N + 2), sizeof(double), t)};
        if (!strips[t].now || !strips[t].next) return perror("psm_calloc"), 1;
        for (int r = 1; r <= rows; r++)
            for (int c = 1; c <= N; c++) at(strips[t].now, r)[c] = start_value(first + r - 1, c);
        first += rows;
    }

#pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num();
        for (int n = 0; n < STEPS; n++) {
            if (t > 0) copy_row(at(strips[t].now, 0), at(strips[t - 1].now, strips[t - 1].rows));
            if (t + 1 < threads) copy_row(at(strips[t].now, strips[t].rows + 1), at(strips[t + 1].now, 1));
#pragma omp barrier
            step(&strips[t]);
#pragma omp barrier
        }
    }

    double x = sin(PI / (2 * (N + 1))), y = sin(2 * PI / (2 * (N + 1)));
    double factor = pow(1 - 4 * ALPHA * (x * x + y * y), STEPS);
    for (int t = 0; t < threads; t++) {
        for (int r = 1; r <= strips[t].rows; r++)
            for (int c = 1; c <= N; c++) {
                double error = fabs(at(strips[t].now, r)[c] - factor * start_value(strips[t].first + r - 1, c));
                if (error > worst) worst = error;
            }
        count_pages(&pages, strips[t].now, (size_t)(strips[t].rows + 2) * (N + 2) * sizeof(double));
    }
    printf("%d threads, %d steps, largest error %.1e\n", threads, STEPS, worst);
    print_pages("the plate", &pages);
    for (int t = 0; t < threads; t++) {
        psm_free(strips[t].now);
        psm_free(strips[t].next);
    }
    free(strips);
    return !(worst < 1e-10);
}

// The frame of both programs: arguments, the steps, what is printed.
#pragma once

#include <getopt.h>

#include <algorithm>
#include <cmath>

#include "grid.h"

namespace jarena {

// What a program computes. `step` and `error` are called by every thread with its number.
//   value(field, x, y, z)   at the start
//   step(grid, team, thread, n)
//   error(grid, thread, steps) -> how far the thread's patches are from the exact solution
template <class Kernel>
int run(const char* program, const Kernel& kernel, Setup setup, int threads, const char* memory_name, bool pinned) {
    const Memory memory(memory_name);
    Team team(threads, pinned);
    Grid grid(setup, memory, team);
    std::vector<double> errors(static_cast<std::size_t>(threads));
    double computing = 0;
    double regridding = 0;
    Pages pages;

    auto body = [&](int thread) {
        memory.join(thread);
        team.note_node(thread);
        team.wait();
        grid.create(thread, [&](int f, int x, int y, int z) { return kernel.value(grid, f, x, y, z); });
        for (int n = 0; n < setup.steps; ++n) {
            const double start = seconds();
            kernel.step(grid, team, thread, n);
            if (thread == 0) computing += seconds() - start;
            if (setup.regrid_every == 0 || (n + 1) % setup.regrid_every != 0) continue;
            const double before = seconds();
            grid.regrid(thread);
            if (thread == 0) regridding += seconds() - before;
        }
        errors[static_cast<std::size_t>(thread)] = kernel.error(grid, thread, setup.steps);
        team.note_node(thread);
        team.wait();
        if (thread == 0) pages = grid.pages();
        team.wait();
    };
    team.run(body);

    double error = 0;
    for (double e : errors) error = std::fmax(error, e);
    const bool right = error < 1e-9;
    const double operations = static_cast<double>(grid.updates_per_step()) * setup.steps;
    std::printf(
        "{\"program\": \"%s\", \"memory\": \"%s\", \"threads\": %d, \"cells\": %d, \"patches\": %d, \"steps\": %d, "
        "\"regrid_every\": %d, \"operations\": %.0f, \"seconds\": %.6f, \"ops_per_second\": %.4g, "
        "\"regrid_seconds\": %.6f, ",
        program, memory.name(), threads, setup.cells, setup.patches, setup.steps, setup.regrid_every, operations,
        computing + regridding, operations / computing, regridding);
    pages.print();
    std::printf("\"error\": %.3g, \"check\": \"%s\"}\n", error, right ? "ok" : "wrong result");
    return right ? 0 : 1;
}

// The command line that the programs share. A wrong word ends the program with one line and status 2.
// --seed and --report-pages are there because all benchmark programs have them: nothing is random here, and the
// pages are always counted.
struct Arguments {
    Setup setup;
    const char* memory = "best";
    int threads = 2;
    bool pinned = false;

    Arguments(int count, char** words, Setup otherwise) : setup(otherwise) {
        static constexpr char accepted[] =
            "accepted: --memory psm|owner|wrong|best, --threads N, --scale S (of the steps), --cells N, --patches N, "
            "--steps N, "
            "--regrid-every N, --pinned, --seed K, --report-pages";
        double scale = 1;
        const option options[] = {{"memory", required_argument, nullptr, 'm'},
                                  {"threads", required_argument, nullptr, 't'},
                                  {"cells", required_argument, nullptr, 'c'},
                                  {"patches", required_argument, nullptr, 'p'},
                                  {"steps", required_argument, nullptr, 's'},
                                  {"regrid-every", required_argument, nullptr, 'r'},
                                  {"pinned", no_argument, nullptr, 'P'},
                                  {"scale", required_argument, nullptr, 'S'},
                                  {"seed", required_argument, nullptr, 'i'},
                                  {"report-pages", no_argument, nullptr, 'i'},
                                  {nullptr, 0, nullptr, 0}};
        opterr = 0;
        for (int c; (c = getopt_long(count, words, "", options, nullptr)) != -1;) {
            switch (c) {
                case 'm': memory = optarg; break;
                case 't': threads = number(optarg, 1, accepted); break;
                case 'c': setup.cells = number(optarg, 1, accepted); break;
                case 'p': setup.patches = number(optarg, 1, accepted); break;
                case 's': setup.steps = number(optarg, 1, accepted); break;
                case 'r': setup.regrid_every = number(optarg, 0, accepted); break;
                case 'P': pinned = true; break;
                case 'S': scale = factor(optarg, accepted); break;
                case 'i': break;
                default: die(accepted);
            }
        }
        if (optind != count) die(accepted);
        setup.steps = std::max(1, static_cast<int>(setup.steps * scale));
    }

    // The value of --scale.
    static double factor(const char* text, const char* accepted) {
        char* end = nullptr;
        const double value = std::strtod(text, &end);
        if (end == text || *end != '\0' || !(value > 0) || value > 1000) die(accepted);
        return value;
    }

private:
    static int number(const char* text, long least, const char* accepted) {
        char* end = nullptr;
        const long value = std::strtol(text, &end, 10);
        if (end == text || *end != '\0' || value < least || value > 1 << 20) die(accepted);
        return static_cast<int>(value);
    }
};

}  // namespace jarena

// Linear advection by the first-order upwind scheme, in two or three dimensions, with a constant
// velocity: u' = u - sum over d of c_d (u - u one cell back along d).
//
// A wave exp(i k.x) is multiplied by g = 1 - sum c_d (1 - exp(-i k_d)) in each step, so the exact
// result of the scheme itself is known: a right program differs from it by rounding only.
#pragma once

#include <complex>

#include "run.h"

namespace jarena {

struct Advection {
    static constexpr double courant[3] = {0.3, 0.25, 0.2};
    static constexpr double mean = 2.0;

    static double wave_number(const Grid& g, int d) { return 2 * M_PI * (d + 1) / g.extent(d); }
    static double phase(const Grid& g, int x, int y, int z) {
        return wave_number(g, 0) * x + wave_number(g, 1) * y + wave_number(g, 2) * z;
    }
    double value(const Grid& g, int field, int x, int y, int z) const {
        return field == 0 ? mean + std::cos(phase(g, x, y, z)) : 0;
    }

    void step(Grid& g, Team& team, int thread, int n) const {
        const auto from = static_cast<std::size_t>(n % 2);
        g.exchange(thread, n % 2, Grid::Side::below);
        team.wait();
        g.each_own(thread, [&](Grid::Patch& p) {
            const double* const u = p.field[from];
            double* const v = p.field[1 - from];
            const std::ptrdiff_t dx = g.next(0);
            const std::ptrdiff_t dy = g.next(1);
            const std::ptrdiff_t dz = g.next(2);
            for (int z = 0; z < g.cells(2); ++z)
                for (int y = 0; y < g.cells(1); ++y) {
                    const std::ptrdiff_t row = g.offset(0, y, z);
                    for (std::ptrdiff_t i = row; i < row + g.cells(0); ++i)
                        v[i] = u[i] - courant[0] * (u[i] - u[i - dx]) - courant[1] * (u[i] - u[i - dy]) -
                               courant[2] * (u[i] - u[i - dz]);
                }
        });
        team.wait();
    }

    double error(Grid& g, int thread, int steps) const {
        std::complex<double> factor = 1;
        for (int d = 0; d < 3; ++d)
            if (g.next(d) != 0) factor -= courant[d] * (1.0 - std::polar(1.0, -wave_number(g, d)));
        const std::complex<double> all = std::pow(factor, steps);
        double worst = 0;
        g.each_own(thread, [&](Grid::Patch& p) {
            const double* const u = p.field[static_cast<std::size_t>(steps % 2)];
            g.each_cell(p, [&](std::ptrdiff_t i, int x, int y, int z) {
                const double exact = mean + (all * std::polar(1.0, phase(g, x, y, z))).real();
                worst = std::fmax(worst, std::fabs(u[i] - exact));
            });
        });
        return worst;
    }
};

inline int advection(const char* program, int dimensions, int cells, int patches, int count, char** words) {
    const Arguments a(count, words, {dimensions, 2, cells, patches, 30, 10});
    return run(program, Advection{}, a.setup, a.threads, a.memory, a.pinned);
}

}  // namespace jarena

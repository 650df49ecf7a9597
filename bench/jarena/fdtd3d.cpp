// JArena's 3-D finite-difference time-domain program: Maxwell's equations on Yee's grid, six fields.
// The options: run.h.
//
// Three plane waves, one along each dimension. On the grid cos(k i - w n) solves the scheme exactly
// when sin(w / 2) = S sin(k / 2), with the magnetic field half a cell and half a step ahead; so a
// right program differs from that by rounding only.
#include "run.h"

namespace jarena {
namespace {

enum Field { Ex, Ey, Ez, Hx, Hy, Hz };

struct Fdtd {
    static constexpr double courant = 0.5;  // below 1 / sqrt(3)

    static double wave_number(const Grid& g, int d) { return 2 * M_PI * (d + 1) / g.extent(d); }

    // The wave along d has its electric field along d + 1 and its magnetic field along d + 2.
    static double exact(const Grid& g, int field, int x, int y, int z, int n) {
        const int at[3] = {x, y, z};
        const bool electric = field < Hx;
        const int d = electric ? (field + 2) % 3 : (field - Hx + 1) % 3;
        const double k = wave_number(g, d);
        const double w = 2 * std::asin(courant * std::sin(k / 2));
        const double half = electric ? 0 : 0.5;
        return std::cos(k * (at[d] + half) - w * (n + half));
    }
    double value(const Grid& g, int field, int x, int y, int z) const {
        // Before the first step the magnetic field is half a step behind: its time is n - 1/2.
        return exact(g, field, x, y, z, field < Hx ? 0 : -1);
    }

    // to += S (a - a at `da` - b + b at `db`): one component of a curl.
    static void curl(const Grid& g, double* to, const double* a, std::ptrdiff_t da, const double* b,
                     std::ptrdiff_t db) {
        for (int z = 0; z < g.cells(2); ++z)
            for (int y = 0; y < g.cells(1); ++y) {
                const std::ptrdiff_t row = g.offset(0, y, z);
                for (std::ptrdiff_t i = row; i < row + g.cells(0); ++i)
                    to[i] += courant * ((a[i] - a[i + da]) - (b[i] - b[i + db]));
            }
    }

    void step(Grid& g, Team& team, int thread, int) const {
        const std::ptrdiff_t along[3] = {g.next(0), g.next(1), g.next(2)};
        for (int f = Ex; f <= Ez; ++f) g.exchange(thread, f, Grid::Side::above);
        team.wait();
        g.each_own(thread, [&](Grid::Patch& p) {
            // dH_d/dt = dE_(d+1)/d(d+2) - dE_(d+2)/d(d+1), with differences ahead
            for (std::size_t d = 0; d < 3; ++d) {
                const std::size_t e = (d + 1) % 3;
                const std::size_t f = (d + 2) % 3;
                curl(g, p.field[Hx + d], p.field[Ex + f], along[e], p.field[Ex + e], along[f]);
            }
        });
        team.wait();
        for (int f = Hx; f <= Hz; ++f) g.exchange(thread, f, Grid::Side::below);
        team.wait();
        g.each_own(thread, [&](Grid::Patch& p) {
            // dE_d/dt = dH_(d+2)/d(d+1) - dH_(d+1)/d(d+2), with differences behind
            for (std::size_t d = 0; d < 3; ++d) {
                const std::size_t e = (d + 1) % 3;
                const std::size_t f = (d + 2) % 3;
                curl(g, p.field[Ex + d], p.field[Hx + f], -along[e], p.field[Hx + e], -along[f]);
            }
        });
        team.wait();
    }

    double error(Grid& g, int thread, int steps) const {
        double worst = 0;
        g.each_own(thread, [&](Grid::Patch& p) {
            for (int f = Ex; f <= Hz; ++f) {
                const double* const u = p.field[static_cast<std::size_t>(f)];
                g.each_cell(p, [&](std::ptrdiff_t i, int x, int y, int z) {
                    worst = std::fmax(worst, std::fabs(u[i] - exact(g, f, x, y, z, f < Hx ? steps : steps - 1)));
                });
            }
        });
        return worst;
    }
};

}  // namespace
}  // namespace jarena

int main(int count, char** words) {
    using namespace jarena;
    const Arguments a(count, words, {3, 6, 30, 4, 30, 10});
    return run("fdtd3d", Fdtd{}, a.setup, a.threads, a.memory, a.pinned);
}

// A multigrid solver, as AMG is one: main allocates a hierarchy of ever coarser grids, each with its sparse matrix, the
// matrices that lead to the next one and back, and vectors; all threads use all of it, each its rows. A smoothing step
// has a vector of its own, which one thread allocates and frees, as AMG's relaxation does.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

constexpr unsigned cycles = 8;   // of a solve
constexpr double damping = 0.8;  // of a smoothing step
constexpr double gain = 0.5;     // a cycle leaves at most this share of the residual

// An array from malloc whose last word says how long it is.
template <class Item>
class Array {
public:
    explicit Array(std::uint64_t count) : count_(count), items_(static_cast<Item*>(bench::take(bytes() + 8))) {
        const std::uint64_t tag = bench::scatter(count_);
        std::memcpy(reinterpret_cast<char*>(items_) + bytes(), &tag, 8);
    }
    ~Array() {
        const std::uint64_t tag = bench::scatter(count_);
        if (std::memcmp(reinterpret_cast<char*>(items_) + bytes(), &tag, 8) != 0)
            bench::fail("what came after an array of %zu bytes was overwritten", bytes());
        std::free(items_);
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    Item& operator[](std::uint64_t i) { return items_[i]; }
    const Item& operator[](std::uint64_t i) const { return items_[i]; }
    std::size_t bytes() const { return (count_ * sizeof(Item) + 7) / 8 * 8; }
    std::uint64_t size() const { return count_; }

private:
    std::uint64_t count_;
    Item* items_;
};

// Compressed rows: what is not zero, and in which column.
class Matrix {
public:
    // each(row, put) calls put(column, value) for what is in the row.
    template <class Each>
    Matrix(std::uint64_t rows, const Each& each) : first(rows + 1), columns(count(rows, each)), values(columns.size()) {
        std::uint64_t at = 0;
        for (std::uint64_t row = 0; row < rows; ++row) {
            first[row] = at;
            each(row, [&](std::uint64_t column, double value) {
                columns[at] = static_cast<std::uint32_t>(column);
                values[at++] = value;
            });
        }
        first[rows] = at;
    }
    double times(std::uint64_t row, const Array<double>& x) const {
        double sum = 0;
        for (std::uint64_t i = first[row]; i < first[row + 1]; ++i) sum += values[i] * x[columns[i]];
        return sum;
    }
    std::size_t bytes() const { return first.bytes() + columns.bytes() + values.bytes(); }

    Array<std::uint64_t> first;
    Array<std::uint32_t> columns;
    Array<double> values;

private:
    template <class Each>
    static std::uint64_t count(std::uint64_t rows, const Each& each) {
        std::uint64_t found = 0;
        for (std::uint64_t row = 0; row < rows; ++row) each(row, [&](std::uint64_t, double) { ++found; });
        return found;
    }
};

// A cube of cells, and the cells of the next coarser one: its cell i lies on this one's 2i + 1. Where the side is even,
// the border would be elsewhere for the coarser one.
class Grid {
public:
    explicit Grid(std::uint64_t side) : side_(side) {}
    std::uint64_t side() const { return side_; }
    std::uint64_t cells() const { return side_ * side_ * side_; }
    std::uint64_t coarser() const { return side_ / 2; }
    bool is_coarsest() const { return side_ < 5 || side_ % 2 == 0; }

    // Laplace's 27 points: 26 in the middle, -1 around it, and nothing beyond the border.
    template <class Put>
    void stencil(std::uint64_t cell, const Put& put) const {
        near(cell, [&](std::uint64_t other, double) { put(other, other == cell ? 26.0 : -1.0); });
    }
    // Towards the finer grid: in the middle between cells the mean of them.
    template <class Put>
    void from_coarser(std::uint64_t cell, const Put& put) const {
        const std::uint64_t n = coarser();
        for (std::uint64_t z = lower(cell / side_ / side_); z <= upper(cell / side_ / side_); ++z)
            for (std::uint64_t y = lower(cell / side_ % side_); y <= upper(cell / side_ % side_); ++y)
                for (std::uint64_t x = lower(cell % side_); x <= upper(cell % side_); ++x)
                    put((z * n + y) * n + x,
                        share(cell / side_ / side_, z) * share(cell / side_ % side_, y) * share(cell % side_, x));
    }
    // What of this grid's cells goes into a cell of the coarser one: the same weights, so that it fits the coarser
    // stencil.
    template <class Put>
    void to_coarser(std::uint64_t cell, const Put& put) const {
        const std::uint64_t n = coarser();
        const std::uint64_t middle =
            ((2 * (cell / n / n) + 1) * side_ + 2 * (cell / n % n) + 1) * side_ + 2 * (cell % n) + 1;
        near(middle, [&](std::uint64_t other, double weight) { put(other, weight / 2); });
    }

private:
    // The cells around one, with a half for each direction in which they are beside it.
    template <class Put>
    void near(std::uint64_t cell, const Put& put) const {
        const std::uint64_t side = side_, at[] = {cell / side / side, cell / side % side, cell % side};
        for (std::uint64_t z = at[0] - (at[0] > 0); z <= std::min(at[0] + 1, side - 1); ++z)
            for (std::uint64_t y = at[1] - (at[1] > 0); y <= std::min(at[1] + 1, side - 1); ++y)
                for (std::uint64_t x = at[2] - (at[2] > 0); x <= std::min(at[2] + 1, side - 1); ++x)
                    put((z * side + y) * side + x,
                        (z == at[0] ? 1 : .5) * (y == at[1] ? 1 : .5) * (x == at[2] ? 1 : .5));
    }
    // Between which cells of the coarser grid this place is; beyond the border there are none.
    std::uint64_t lower(std::uint64_t place) const {
        return place % 2 == 1 ? place / 2 : place == 0 ? 0 : place / 2 - 1;
    }
    std::uint64_t upper(std::uint64_t place) const { return std::min(place / 2, coarser() - 1); }
    static double share(std::uint64_t place, std::uint64_t coarse) { return place == 2 * coarse + 1 ? 1 : .5; }

    std::uint64_t side_;
};

struct Level {
    explicit Level(std::uint64_t side)
        : grid(side),
          matrix(grid.cells(), [&](std::uint64_t row, const auto& put) { grid.stencil(row, put); }),
          x(grid.cells()),
          wanted(grid.cells()),
          left(grid.cells()) {
        if (grid.is_coarsest()) return;
        const std::uint64_t n = grid.coarser();
        up = new (bench::take(sizeof(Matrix)))
            Matrix(grid.cells(), [&](std::uint64_t row, const auto& put) { grid.from_coarser(row, put); });
        down = new (bench::take(sizeof(Matrix)))
            Matrix(n * n * n, [&](std::uint64_t row, const auto& put) { grid.to_coarser(row, put); });
    }
    ~Level() {
        for (Matrix* one : {up, down}) {
            if (one == nullptr) continue;
            one->~Matrix();
            std::free(one);
        }
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

    Grid grid;
    Matrix matrix;
    Array<double> x, wanted, left;
    Matrix *up = nullptr, *down = nullptr;
};

class Solver {
public:
    Solver(unsigned threads, std::uint64_t side) : threads_(threads), barrier_(threads), largest_(threads) {
        for (;; side /= 2) {
            levels_.push_back(new (bench::take(sizeof(Level))) Level(side));
            if (levels_.back()->grid.is_coarsest()) return;
        }
    }
    ~Solver() {
        for (Level* level : levels_) {
            level->~Level();
            std::free(level);
        }
    }
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    // All threads: a new right side, and as many cycles as a solve has.
    void solve(unsigned index, std::uint64_t number) {
        Level& top = *levels_.front();
        for_rows(index, top.x, [&](std::uint64_t row) {
            top.wanted[row] = wanted(number, row);
            top.x[row] = 0;
        });
        barrier_.wait();
        for (unsigned cycle = 0; cycle < cycles; ++cycle) {
            down_from(index, 0);
            residual(index, top);
            double largest = 0;
            for_rows(index, top.x, [&](std::uint64_t row) { largest = std::max(largest, std::abs(top.left[row])); });
            largest_[index] = largest;
            barrier_.wait();
            // The largest of all does not depend on who has which rows.
            const double now = *std::max_element(largest_.begin(), largest_.end());
            if (cycle > 0 && now > gain * before_)
                bench::fail("cycle %u left %g of a residual of %g", cycle, now, before_);
            barrier_.wait();
            if (index == 0) before_ = now;
            barrier_.wait();
        }
    }

    static double wanted(std::uint64_t number, std::uint64_t row) {
        return static_cast<double>(bench::scatter(number * 0x100000001 + row) % 2001) - 1000;
    }
    double residual() const { return before_; }
    const std::vector<Level*>& levels() const { return levels_; }

    std::uint64_t rows() const {
        std::uint64_t all = 0;
        for (const Level* level : levels_) all += level->grid.cells();
        return all;
    }
    std::uint64_t bytes() const {
        std::uint64_t all = 0;
        for (const Level* level : levels_) {
            all += level->matrix.bytes() + 3 * level->x.bytes();
            if (level->up != nullptr) all += level->up->bytes() + level->down->bytes();
        }
        return all;
    }

private:
    template <class Each>
    void for_rows(unsigned index, const Array<double>& of, const Each& each) const {
        for (std::uint64_t row = of.size() * index / threads_; row < of.size() * (index + 1) / threads_; ++row)
            each(row);
    }

    void residual(unsigned index, Level& level) {
        for_rows(index, level.x,
                 [&](std::uint64_t row) { level.left[row] = level.wanted[row] - level.matrix.times(row, level.x); });
        barrier_.wait();
    }

    void smooth(unsigned index, Level& level) {
        if (index == 0) before_step_ = new (bench::take(sizeof(Array<double>))) Array<double>(level.x.size());
        barrier_.wait();
        for_rows(index, level.x, [&](std::uint64_t row) { (*before_step_)[row] = level.x[row]; });
        barrier_.wait();
        for_rows(index, level.x, [&](std::uint64_t row) {
            level.x[row] += damping / 26 * (level.wanted[row] - level.matrix.times(row, *before_step_));
        });
        barrier_.wait();
        if (index == 0) {
            before_step_->~Array();
            std::free(before_step_);
        }
    }

    void down_from(unsigned index, std::size_t at) {
        Level& level = *levels_[at];
        const unsigned steps = at + 1 == levels_.size() ? 16 : 1;
        for (unsigned i = 0; i < steps; ++i) smooth(index, level);
        if (at + 1 == levels_.size()) return;
        residual(index, level);
        Level& coarser = *levels_[at + 1];
        for_rows(index, coarser.x, [&](std::uint64_t row) {
            coarser.wanted[row] = level.down->times(row, level.left);
            coarser.x[row] = 0;
        });
        barrier_.wait();
        down_from(index, at + 1);
        barrier_.wait();
        for_rows(index, level.x, [&](std::uint64_t row) { level.x[row] += level.up->times(row, coarser.x); });
        barrier_.wait();
        smooth(index, level);
    }

    const unsigned threads_;
    bench::Barrier barrier_;
    std::vector<double> largest_;
    std::vector<Level*> levels_;
    Array<double>* before_step_ = nullptr;
    double before_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& side = command.option("side", 47, 191, "cells of a side of the cube, an odd number up to 999");
    const auto& solves = command.option("solves", 16, "right sides that are solved for, at scale 1");
    command.parse();
    if (side < 7 || side > 999 || side % 2 == 0)
        bench::fail("--side: %llu has no coarser cube; accepted: odd numbers from 7 to 999",
                    static_cast<unsigned long long>(side));

    const unsigned threads = command.threads();
    const std::uint64_t solves_wanted = command.scaled(solves);
    std::optional<Solver> solver(std::in_place, threads, side);
    const double seconds = bench::run_threads(threads, [&](unsigned index) {
        for (std::uint64_t number = 0; number < solves_wanted; ++number) solver->solve(index, number + command.seed());
        // Each the rows that it has worked on.
        bench::PageList pages(command.pages());
        for (const Level* level : solver->levels()) {
            const std::uint64_t cells = level->grid.cells(), first = cells * index / threads,
                                last = cells * (index + 1) / threads;
            const std::uint64_t from = level->matrix.first[first], to = level->matrix.first[last];
            if (first == last) continue;
            pages.add(&level->x[first], (last - first) * sizeof(double));
            pages.add(&level->matrix.columns[from], (to - from) * sizeof(std::uint32_t));
            pages.add(&level->matrix.values[from], (to - from) * sizeof(double));
        }
        pages.count();
    });

    // What is left of the last right side once more, without the matrix.
    const Level& top = *solver->levels().front();
    double largest = 0;
    std::uint64_t answer = 0;
    for (std::uint64_t cell = 0; cell < top.grid.cells(); ++cell) {
        const double left = Solver::wanted(solves_wanted - 1 + command.seed(), cell);
        double sum = 0;
        top.grid.stencil(cell, [&](std::uint64_t other, double value) { sum += value * top.x[other]; });
        largest = std::max(largest, std::abs(left - sum));
        std::uint64_t bits = 0;
        std::memcpy(&bits, &top.x[cell], 8);
        answer += bench::scatter(bits + cell);
    }
    if (largest != solver->residual()) bench::fail("the solution leaves %g, not %g", largest, solver->residual());
    command.figure("levels", static_cast<double>(solver->levels().size()));
    command.figure("residual", largest);
    command.figure("answer", static_cast<double>(answer & 0xffffffff));
    const std::uint64_t operations = solves_wanted * cycles * solver->rows(), bytes = solver->bytes();
    solver.reset();  // looks at what it frees
    return command.report({.operations = operations, .seconds = seconds, .requested_bytes = bytes});
}

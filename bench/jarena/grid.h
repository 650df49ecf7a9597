// A periodic grid in two or three dimensions, cut into patches that threads own. Each patch has its
// own block of memory for each field, with one layer of ghost cells, and is computed by its owner.
//
// Every `regrid_every` steps all patches change hands, as they do when a program balances its load or
// refines its grid: new blocks are written (by whom: memory.h), and old ones freed by their new owner.
// That recycled memory is where first touch alone fails.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "memory.h"
#include "pages.h"
#include "team.h"

namespace jarena {

using Index = std::array<int, 3>;

struct Setup {
    int dimensions = 2;
    int fields = 2;
    int cells = 32;   // of a patch, along each dimension
    int patches = 8;  // along each dimension
    int steps = 30;
    int regrid_every = 10;  // 0: never
};

class Grid {
public:
    struct Patch {
        int owner;
        Index at;
        std::vector<double*> field;
        std::vector<double*> old;  // during a change of hands
    };

    Grid(const Setup& setup, const Memory& memory, Team& team) : setup_(setup), memory_(memory), team_(team) {
        for (std::size_t d = 0; d < 3; ++d) {
            const bool active = static_cast<int>(d) < setup.dimensions;
            ghost_[d] = active ? 1 : 0;
            cells_[d] = active ? setup.cells : 1;
            count_[d] = active ? setup.patches : 1;
        }
        stride_[0] = 1;
        stride_[1] = cells_[0] + 2 * ghost_[0];
        stride_[2] = stride_[1] * (cells_[1] + 2 * ghost_[1]);
        values_ = static_cast<std::size_t>(stride_[2] * (cells_[2] + 2 * ghost_[2]));
        const int all = count_[0] * count_[1] * count_[2];
        for (int p = 0; p < all; ++p)
            patches_.push_back({static_cast<int>(std::int64_t{p} * team.size() / all),
                                {p % count_[0], p / count_[0] % count_[1], p / count_[0] / count_[1]},
                                std::vector<double*>(static_cast<std::size_t>(setup.fields)),
                                std::vector<double*>(static_cast<std::size_t>(setup.fields))});
    }
    ~Grid() {
        for (Patch& p : patches_)
            for (double* block : p.field) memory_.release(block);
    }
    Grid(const Grid&) = delete;
    Grid& operator=(const Grid&) = delete;

    int cells(int d) const { return cells_[static_cast<std::size_t>(d)]; }
    int extent(int d) const { return cells(d) * count_[static_cast<std::size_t>(d)]; }
    // From a cell to the next along a dimension; 0 along one that the grid does not have.
    std::ptrdiff_t next(int d) const { return d < setup_.dimensions ? stride_[static_cast<std::size_t>(d)] : 0; }
    std::ptrdiff_t offset(int x, int y, int z) const {
        return (x + ghost_[0]) + (y + ghost_[1]) * stride_[1] + (z + ghost_[2]) * stride_[2];
    }
    std::int64_t updates_per_step() const { return std::int64_t{extent(0)} * extent(1) * extent(2); }

    // Each thread calls these with its own number.

    // Blocks for all patches, filled with value(field, x, y, z) of the whole grid.
    template <class Value>
    void create(int thread, Value value) {
        for (Patch& p : patches_) {
            if (toucher(p.owner) != thread) continue;
            for (int f = 0; f < setup_.fields; ++f) {
                double* const block = p.field[static_cast<std::size_t>(f)] = memory_.allocate(values_, p.owner);
                std::memset(block, 0, values_ * sizeof(double));
                each_cell(p, [&](std::ptrdiff_t i, int x, int y, int z) { block[i] = value(f, x, y, z); });
            }
        }
        team_.wait();
    }

    // Fills the ghost cells of the thread's patches: below the first cells or above the last.
    enum class Side { below, above };
    void exchange(int thread, int field, Side side) {
        for (Patch& p : patches_) {
            if (p.owner != thread) continue;
            for (int d = 0; d < setup_.dimensions; ++d) {
                const double* const from =
                    neighbour(p, d, side == Side::below ? -1 : 1).field[static_cast<std::size_t>(field)];
                copy_face(p.field[static_cast<std::size_t>(field)], from, d, side);
            }
        }
    }

    template <class Work>
    void each_own(int thread, Work work) {
        for (Patch& p : patches_)
            if (p.owner == thread) work(p);
    }
    // work(index, x, y, z): the cell's place in the block, and in the whole grid.
    template <class Work>
    void each_cell(const Patch& p, Work work) const {
        for (int z = 0; z < cells(2); ++z)
            for (int y = 0; y < cells(1); ++y)
                for (int x = 0; x < cells(0); ++x)
                    work(offset(x, y, z), p.at[0] * cells(0) + x, p.at[1] * cells(1) + y, p.at[2] * cells(2) + z);
    }

    // The next thread becomes the owner of each patch.
    void regrid(int thread) {
        for (Patch& p : patches_) {
            if ((memory_.owner_touches() ? heir(p) : p.owner) != thread) continue;
            for (std::size_t f = 0; f < p.field.size(); ++f) {
                p.old[f] = p.field[f];
                p.field[f] = memory_.allocate(values_, heir(p));
                std::memcpy(p.field[f], p.old[f], values_ * sizeof(double));
            }
        }
        team_.wait();
        for (Patch& p : patches_)
            if (heir(p) == thread)
                for (double* block : p.old) memory_.release(block);
        team_.wait();
        if (thread == 0)
            for (Patch& p : patches_) p.owner = heir(p);
        team_.wait();
    }

    // By one thread, while the others wait: a patch's page is remote when it is not on its owner's node.
    Pages pages() const {
        Pages pages;
        for (const Patch& p : patches_)
            for (const double* block : p.field) pages.count(block, values_ * sizeof(double), team_.node_of(p.owner));
        return pages;
    }

private:
    int heir(const Patch& p) const { return (p.owner + 1) % team_.size(); }
    int toucher(int owner) const { return memory_.owner_touches() ? owner : (owner + 1) % team_.size(); }

    const Patch& neighbour(const Patch& p, int d, int by) const {
        Index at = p.at;
        const auto k = static_cast<std::size_t>(d);
        at[k] = (at[k] + by + count_[k]) % count_[k];
        return patches_[static_cast<std::size_t>(at[0] + count_[0] * (at[1] + count_[1] * at[2]))];
    }

    void copy_face(double* to, const double* from, int d, Side side) const {
        const auto k = static_cast<std::size_t>(d);
        const int source = side == Side::below ? cells_[k] - 1 : 0;
        const int target = side == Side::below ? -1 : cells_[k];
        Index last = cells_;
        last[k] = 1;
        for (int z = 0; z < last[2]; ++z)
            for (int y = 0; y < last[1]; ++y)
                for (int x = 0; x < last[0]; ++x) {
                    const std::ptrdiff_t i = offset(x, y, z);
                    to[i + target * stride_[k]] = from[i + source * stride_[k]];
                }
    }

    Setup setup_;
    const Memory& memory_;
    Team& team_;
    Index ghost_{};
    Index cells_{};
    Index count_{};
    std::array<std::ptrdiff_t, 3> stride_{};
    std::size_t values_ = 0;
    std::vector<Patch> patches_;
};

}  // namespace jarena

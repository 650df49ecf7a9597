// A fluid of particles in a grid of cells, as fluidanimate keeps it: main allocates all cells, each thread works on a
// part of the grid and reads the neighbours' cells too. Particles move, and a cell that overflows gets another
// block from the thread that moves one there; the cell's owner frees it later.
#include <mutex>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

constexpr unsigned in_a_block = 16;  // particles, as fluidanimate's cells have

struct Particle {
    std::uint64_t id;
    std::uint64_t density;
};

// The last word says what it was written for, so that damage is noticed.
struct Block {
    Block* next;
    std::uint64_t used;
    Particle particles[in_a_block];
    std::uint64_t tag;
};

struct Cell {
    Block* blocks = nullptr;
    std::uint64_t count = 0;
    std::mutex lock;
};

std::uint64_t tag_of(const Block* block) { return bench::scatter(reinterpret_cast<std::uintptr_t>(block)); }

void check(const Block* block) {
    if (block->tag != tag_of(block) || block->used > in_a_block)
        bench::fail("the block of particles at %p was overwritten", static_cast<const void*>(block));
}

void put(Cell& cell, const Particle& particle) {
    if (cell.blocks == nullptr || cell.blocks->used == in_a_block) {
        auto* const block = static_cast<Block*>(bench::take(sizeof(Block)));
        block->next = cell.blocks;
        block->used = 0;
        block->tag = tag_of(block);
        cell.blocks = block;
    }
    cell.blocks->particles[cell.blocks->used++] = particle;
    ++cell.count;
}

// Cells in a ring of rows: neighbours wrap around.
class Grid {
public:
    Grid(std::uint64_t side, std::uint64_t particles) : side_(side), cells_(side * side) {
        for (std::uint64_t id = 0; id < particles; ++id) put(cells_[bench::scatter(id) % cells_.size()], {id, 0});
    }
    std::uint64_t cells() const { return cells_.size(); }
    Cell& cell(std::uint64_t number) { return cells_[number]; }

    std::uint64_t neighbour(std::uint64_t cell, unsigned direction) const {
        const std::uint64_t row = cell / side_, column = cell % side_;
        switch (direction) {
            case 0: return (row + 1) % side_ * side_ + column;
            case 1: return (row + side_ - 1) % side_ * side_ + column;
            case 2: return row * side_ + (column + 1) % side_;
            case 3: return row * side_ + (column + side_ - 1) % side_;
            default: return cell;
        }
    }

    // A particle stays in its cell in three of eight steps.
    std::uint64_t next(std::uint64_t cell, std::uint64_t id, std::uint64_t step) const {
        return neighbour(cell, static_cast<unsigned>(bench::scatter(id * 0x10001 + step) & 7));
    }

private:
    std::uint64_t side_;
    std::vector<Cell> cells_;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& particles = command.option("particles", 60'000, "particles in the grid");
    const auto& side = command.option("side", 64, "cells of a row, and rows");
    const auto& steps = command.option("steps", 100, "steps at scale 1");
    command.parse();

    const std::uint64_t todo = command.scaled(steps);
    Grid grid(side, particles), other(side, 0);
    Grid* const grids[] = {&grid, &other};
    bench::Barrier barrier(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        const std::uint64_t cells = grid.cells();
        const std::uint64_t first = cells * index / command.threads(), last = cells * (index + 1) / command.threads();
        for (std::uint64_t step = 0; step < todo; ++step) {
            Grid &now = *grids[step % 2], &later = *grids[(step + 1) % 2];
            for (std::uint64_t number = first; number < last; ++number) {
                std::uint64_t near = 0;
                for (unsigned direction = 0; direction < 5; ++direction)
                    for (const Block* block = now.cell(now.neighbour(number, direction)).blocks; block != nullptr;
                         block = block->next)
                        for (std::uint64_t i = 0; i < block->used; ++i) near += block->particles[i].id != 0;
                for (Block* block = now.cell(number).blocks; block != nullptr; block = block->next)
                    for (std::uint64_t i = 0; i < block->used; ++i) block->particles[i].density += near;
            }
            barrier.wait();
            for (std::uint64_t number = first; number < last; ++number) {
                Cell& from = now.cell(number);
                while (Block* const block = from.blocks) {
                    check(block);
                    for (std::uint64_t i = 0; i < block->used; ++i) {
                        Cell& to = later.cell(now.next(number, block->particles[i].id, step));
                        const std::lock_guard hold(to.lock);
                        put(to, block->particles[i]);
                    }
                    from.blocks = block->next;
                    std::free(block);
                }
                from.count = 0;
            }
            barrier.wait();
        }
        bench::PageList pages(command.pages());
        for (std::uint64_t number = first; number < last; ++number)
            for (const Block* block = grids[todo % 2]->cell(number).blocks; block != nullptr; block = block->next)
                pages.add(block, sizeof *block);
        pages.count();
    });

    // Each particle's way follows from its number, so where it must be is known without the cells.
    Grid& ended = *grids[todo % 2];
    std::vector<bool> seen(particles);
    for (std::uint64_t number = 0; number < ended.cells(); ++number)
        while (Block* const block = ended.cell(number).blocks) {
            check(block);
            for (std::uint64_t i = 0; i < block->used; ++i) {
                const std::uint64_t id = block->particles[i].id;
                std::uint64_t at = bench::scatter(id) % ended.cells();
                for (std::uint64_t step = 0; step < todo; ++step) at = ended.next(at, id, step);
                if (id >= particles || at != number || seen[id]) bench::fail("a particle is where it cannot be");
                seen[id] = true;
            }
            ended.cell(number).blocks = block->next;
            std::free(block);
        }
    for (std::uint64_t id = 0; id < particles; ++id)
        if (!seen[id]) bench::fail("a particle is lost");
    return command.report({.operations = todo * particles, .seconds = seconds});
}

// Monte Carlo transport, as Quicksilver has it: particles fly through a mesh whose cross sections main has read for
// all, collide, split and are absorbed. A particle that leaves a thread's part of the mesh is handed to the next
// thread, which frees it; the tallies of all cells are summed.
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

constexpr unsigned groups = 32;  // of energy

struct Particle {
    Particle* next;
    std::uint64_t random, cell, energy;
    std::uint64_t weight;
    std::uint64_t tag;
};

// One cell of the mesh: what a collision does at each energy.
struct Material {
    std::uint64_t absorbed[groups], split[groups];  // of 1024 collisions
    std::uint64_t tag;
};

std::uint64_t tag_of(const Particle* particle) { return bench::scatter(reinterpret_cast<std::uintptr_t>(particle)); }

Particle* make(std::uint64_t random, std::uint64_t cell, std::uint64_t energy) {
    auto* const particle = static_cast<Particle*>(bench::take(sizeof(Particle)));
    *particle = {nullptr, random, cell, energy, 1, tag_of(particle)};
    return particle;
}

void end(Particle* particle) {
    if (particle->tag != tag_of(particle))
        bench::fail("the particle at %p was overwritten", static_cast<void*>(particle));
    std::free(particle);
}

// What comes to a thread from others.
class Mailbox {
public:
    void put(Particle* particle) {
        const std::lock_guard hold(lock_);
        particle->next = head_;
        head_ = particle;
    }
    Particle* take_all() {
        const std::lock_guard hold(lock_);
        return std::exchange(head_, nullptr);
    }

private:
    std::mutex lock_;
    Particle* head_ = nullptr;
};

struct alignas(64) Tally {
    std::uint64_t born = 0, absorbed = 0, split = 0, collisions = 0;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& particles = command.option("particles", 3'000'000, "particles that begin, at scale 1");
    const auto& cells = command.option("cells", 4096, "cells of the mesh");
    command.parse();

    const unsigned threads = command.threads();
    if (cells < threads)
        bench::fail("--cells: %llu is too few for %u threads; accepted: a cell for each or more",
                    static_cast<unsigned long long>(cells), threads);
    const std::uint64_t todo = command.scaled(particles);
    std::vector<Material*> mesh(cells);
    for (std::uint64_t cell = 0; cell < cells; ++cell) {
        bench::Random random(command.seed(), static_cast<unsigned>(cell));
        mesh[cell] = static_cast<Material*>(bench::take(sizeof(Material)));
        for (unsigned group = 0; group < groups; ++group) {
            mesh[cell]->absorbed[group] = random.between(60, 160);
            mesh[cell]->split[group] = random.between(0, 50);
        }
        mesh[cell]->tag = bench::scatter(cell);
    }
    const auto owner = [&](std::uint64_t cell) { return static_cast<unsigned>(cell * threads / cells); };
    std::vector<Mailbox> mail(threads);
    std::vector<Tally> tallies(threads);
    std::atomic<std::int64_t> alive{static_cast<std::int64_t>(todo)};
    const double seconds = bench::run_threads(threads, [&](unsigned index) {
        Tally& tally = tallies[index];
        bench::PageList pages(command.pages());
        const std::uint64_t first = (cells * index + threads - 1) / threads, mine = bench::share(todo, index, threads);
        const std::uint64_t width = (cells * (index + 1) + threads - 1) / threads - first;
        std::uint64_t begun = 0;
        // What flies is taken first, so that there is a bounded number of them.
        while (alive.load(std::memory_order_acquire) > 0) {
            Particle* flying = mail[index].take_all();
            for (int i = 0; i < 64 && begun < mine; ++i, ++begun) {
                Particle* const born = make(bench::scatter(command.seed() + begun * threads + index),
                                            first + begun % width, begun % groups);
                born->next = flying;
                flying = born;
                ++tally.born;
            }
            if (flying == nullptr) std::this_thread::yield();
            std::int64_t ended = 0;
            while (flying != nullptr) {
                Particle* const particle = flying;
                flying = particle->next;
                if (command.pages().wanted()) pages.add(particle, sizeof *particle);
                for (;;) {
                    particle->random = bench::scatter(particle->random);
                    const Material& material = *mesh[particle->cell];
                    const std::uint64_t chance = particle->random & 1023, group = particle->energy;
                    ++tally.collisions;
                    particle->energy = (group + (particle->random >> 10 & 3)) % groups;
                    if (chance < material.absorbed[group]) {
                        end(particle);
                        ++tally.absorbed;
                        ++ended;
                        break;
                    }
                    if (chance < material.absorbed[group] + material.split[group]) {
                        Particle* const more = make(~particle->random, particle->cell, particle->energy);
                        more->next = flying;
                        flying = more;
                        ++tally.split;
                        --ended;
                    }
                    const bool on = (particle->random >> 20 & 1) != 0;
                    particle->cell = (particle->cell + (on ? 1 : cells - 1)) % cells;
                    if (const unsigned next = owner(particle->cell); next != index) {
                        // Otherwise `alive` could be 0 for a moment after its end there, before its birth is counted.
                        if (ended < 0) alive.fetch_sub(std::exchange(ended, 0), std::memory_order_release);
                        mail[next].put(particle);
                        break;
                    }
                }
            }
            alive.fetch_sub(ended, std::memory_order_release);
        }
        pages.count();
    });
    Tally all;
    for (const Tally& one : tallies)
        all = {all.born + one.born, all.absorbed + one.absorbed, all.split + one.split,
               all.collisions + one.collisions};
    if (all.born != todo || all.born + all.split != all.absorbed) bench::fail("particles are lost");
    for (std::uint64_t cell = 0; cell < cells; ++cell) {
        if (mesh[cell]->tag != bench::scatter(cell)) bench::fail("a cell of the mesh was overwritten");
        std::free(mesh[cell]);
    }
    command.figure("collisions", static_cast<double>(all.collisions));
    return command.report({.operations = all.collisions, .seconds = seconds});
}

// Simulated annealing of a chip's layout, as canneal does it: main allocates every element of a netlist, with its name
// and its wires, and all threads swap the places of random pairs, reading the places of all that these are wired to.
#include <atomic>
#include <cstdio>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

constexpr unsigned wires = 5;

struct Place {
    std::int64_t row, column;
};

struct Element {
    char* name;
    Element** wired;                  // to whom
    std::atomic<const Place*> place;  // which one swaps with another's
    std::uint64_t number, tag;
};

constexpr std::size_t name_bytes = 24, wired_bytes = wires * sizeof(Element*) + 8;

// The last word of each object follows from the element's number.
void stamp(void* object, std::size_t bytes, std::uint64_t number) {
    const std::uint64_t tag = bench::scatter(number);
    std::memcpy(static_cast<char*>(object) + bytes - 8, &tag, 8);
}
void check(const void* object, std::size_t bytes, std::uint64_t number) {
    const std::uint64_t tag = bench::scatter(number);
    if (std::memcmp(static_cast<const char*>(object) + bytes - 8, &tag, 8) != 0)
        bench::fail("what belongs to element %llu was overwritten", static_cast<unsigned long long>(number));
}

Element* make(std::uint64_t number, const Place* place) {
    auto* const element =
        new (bench::take(sizeof(Element))) Element{nullptr, nullptr, place, number, bench::scatter(number)};
    element->name = static_cast<char*>(bench::take(name_bytes));
    std::snprintf(element->name, name_bytes - 8, "net%llu", static_cast<unsigned long long>(number % 100'000'000));
    stamp(element->name, name_bytes, number);
    element->wired = static_cast<Element**>(bench::take(wired_bytes));
    stamp(element->wired, wired_bytes, number);
    return element;
}

std::int64_t cost_at(const Element& element, const Place& place) {
    std::int64_t cost = 0;
    for (unsigned i = 0; i < wires; ++i) {
        const Place& other = *element.wired[i]->place.load(std::memory_order_relaxed);
        cost += std::abs(other.row - place.row) + std::abs(other.column - place.column);
    }
    return cost;
}

// Two elements change places where that makes their wires shorter, or by chance. canneal's own way: each gets the
// other's place by an exchange, and a swap that another thread has touched is not undone.
class Swapper {
public:
    Swapper(std::vector<Element*>& elements, std::vector<std::atomic<bool>>& busy) : elements_(elements), busy_(busy) {}

    void swap(std::uint64_t a, std::uint64_t b, bool by_chance) {
        if (a == b || busy_[a].exchange(true, std::memory_order_acquire)) return;
        if (!busy_[b].exchange(true, std::memory_order_acquire)) {
            Element &one = *elements_[a], &two = *elements_[b];
            const Place *first = one.place.load(std::memory_order_relaxed),
                        *second = two.place.load(std::memory_order_relaxed);
            const std::int64_t gain =
                cost_at(one, *first) + cost_at(two, *second) - cost_at(one, *second) - cost_at(two, *first);
            if (gain > 0 || by_chance) {
                one.place.store(second, std::memory_order_relaxed);
                two.place.store(first, std::memory_order_relaxed);
            }
            busy_[b].store(false, std::memory_order_release);
        }
        busy_[a].store(false, std::memory_order_release);
    }

private:
    std::vector<Element*>& elements_;
    std::vector<std::atomic<bool>>& busy_;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& count = command.option("elements", 100'000, "elements of the netlist");
    const auto& swaps = command.option("swaps", 1'000'000, "swaps that are tried at scale 1, by all threads");
    command.parse();

    bench::Random random(command.seed(), ~0u);
    std::vector<Place> places(count);
    for (std::uint64_t i = 0; i < count; ++i)
        places[i] = {static_cast<std::int64_t>(i / 256), static_cast<std::int64_t>(i % 256)};
    std::vector<Element*> elements(count);
    for (std::uint64_t i = 0; i < count; ++i) elements[i] = make(i, &places[i]);
    for (Element* element : elements)
        for (unsigned i = 0; i < wires; ++i) element->wired[i] = elements[random.below(count)];

    const std::uint64_t todo = command.scaled(swaps);
    std::vector<std::atomic<bool>> busy(count);
    Swapper swapper(elements, busy);
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random mine(command.seed(), index);
        const std::uint64_t share = bench::share(todo, index, command.threads());
        for (std::uint64_t i = 0; i < share; ++i) {
            const std::uint64_t a = mine.below(count), b = mine.below(count);
            // It gets colder: in the first half one of 16 is taken by chance.
            swapper.swap(a, b, 2 * i < share && mine.below(16) == 0);
        }
        bench::PageList pages(command.pages());
        for (std::uint64_t i = index; i < count; i += command.threads()) pages.add(elements[i], sizeof(Element));
        pages.count();
    });

    // However they were swapped, each place has one element.
    std::vector<bool> taken(count);
    for (Element* element : elements) {
        const auto place = static_cast<std::uint64_t>(element->place.load() - places.data());
        if (element->tag != bench::scatter(element->number)) bench::fail("an element was overwritten");
        if (place >= count || taken[place]) bench::fail("two elements are in one place");
        taken[place] = true;
        check(element->name, name_bytes, element->number);
        check(element->wired, wired_bytes, element->number);
        std::free(element->name);
        std::free(element->wired);
        std::free(element);
    }
    return command.report({.operations = todo,
                           .seconds = seconds,
                           .requested_bytes = count * (sizeof(Element) + name_bytes + wired_bytes)});
}

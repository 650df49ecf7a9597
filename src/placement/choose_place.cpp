#include "placement/choose_place.h"

namespace numalloc::placement {

namespace {

// Given the weight `least` of the lightest place, a place of this weight or more is overloaded permanently. Below it,
// the lightest place may be lighter only because one of its threads has just ended and the next has not begun.
constexpr std::uint32_t too_heavy(std::uint32_t least) { return 3 * (least + 1) + 1; }

// Returns the vacated place if it is hardly heavier than the lightest. Otherwise returns the lightest allowed place, of
// equal ones the first from `first` on.
template <class Weight>
PlaceId lightest(const Places& places, const PlaceSet& allowed, PlaceId first, Vacated vacated, Weight weight) {
    PlaceId best = no_place;
    std::uint32_t least = 0;
    for (unsigned step = 0; step < places.count; ++step) {
        const PlaceId id{(first.value + step) % places.count};
        if (!allowed.test(id.value)) continue;
        const std::uint32_t w = weight(places[id]);
        if (best != no_place && w >= least) continue;
        best = id;
        least = w;
    }
    if (vacated.place == no_place || !allowed.test(vacated.place.value)) return best;
    // Places where other threads have ended are lighter. That is no reason to move there.
    const std::uint32_t w = weight(places[vacated.place]);
    const bool still_free = places[vacated.place].threads < vacated.threads;
    return w == least || (still_free && w < too_heavy(least)) ? vacated.place : best;
}

}  // namespace

PlaceId Places::of_os_node(int os_node) const {
    for (unsigned i = 0; i < count; ++i)
        if (place[i].os_node == os_node) return PlaceId{i};
    return no_place;
}

PlaceId choose_interleaved(const Places& places, const PlaceSet& allowed, PlaceId first, Vacated vacated) {
    return lightest(places, allowed, first, vacated, [](const Place& p) { return p.threads; });
}

PlaceId choose_saturated(const Places& places, const PlaceSet& allowed, PlaceId first, Vacated vacated) {
    return lightest(places, allowed, first, vacated,
                    [](const Place& p) { return p.cpus == 0 ? p.threads : p.threads / p.cpus; });
}

}  // namespace numalloc::placement

#include "placement/policy.h"

namespace numalloc::placement {

namespace {

// A place whose weight exceeds this beside the lightest's (`least`) is overloaded for good, not only because other
// places are between two threads.
constexpr std::uint32_t too_heavy(std::uint32_t least) { return 3 * (least + 1) + 1; }

// The allowed place of least weight, of equals the first one from `first` on; the vacated one where that is hardly
// heavier.
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
    // Others that ended meanwhile leave lighter ones. It is no reason to change places with them.
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

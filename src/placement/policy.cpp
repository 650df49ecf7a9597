#include "placement/policy.h"

namespace numalloc::placement {

namespace {

// The allowed place of least weight, of equals the first one from `first` on; `vacated` where that has hardly more.
template <class Weight>
PlaceId lightest(const Places& places, const PlaceSet& allowed, PlaceId first, PlaceId vacated, Weight weight) {
    PlaceId best = no_place;
    std::uint32_t least = 0;
    std::uint32_t most = 0;
    for (unsigned step = 0; step < places.count; ++step) {
        const PlaceId id{(first.value + step) % places.count};
        if (!allowed.test(id.value)) continue;
        const std::uint32_t w = weight(places[id]);
        most = max_of(most, w);
        if (best != no_place && w >= least) continue;
        best = id;
        least = w;
    }
    if (vacated == no_place || !allowed.test(vacated.value)) return best;
    // Others that end at the same time leave lighter ones. It is no reason to change places with them.
    const std::uint32_t w = weight(places[vacated]);
    return w == least || (w <= least + 2 && w < most) ? vacated : best;
}

}  // namespace

PlaceId Places::of_os_node(int os_node) const {
    for (unsigned i = 0; i < count; ++i)
        if (place[i].os_node == os_node) return PlaceId{i};
    return no_place;
}

PlaceId choose_interleaved(const Places& places, const PlaceSet& allowed, PlaceId first, PlaceId vacated) {
    return lightest(places, allowed, first, vacated, [](const Place& p) { return p.threads; });
}

PlaceId choose_saturated(const Places& places, const PlaceSet& allowed, PlaceId first, PlaceId vacated) {
    return lightest(places, allowed, first, vacated, [](const Place& p) { return p.cpus == 0 ? p.threads : p.threads / p.cpus; });
}

}  // namespace numalloc::placement

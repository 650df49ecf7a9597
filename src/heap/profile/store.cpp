#include "heap/profile/store.h"

#include "heap/profile/sampling.h"

namespace numalloc::profile {

std::uint64_t Block::hash(const void* p) { return Random::mixed(address_of(p)); }

std::uint64_t SiteUse::hash(const Site& site) {
    const auto part = [](OsNode node) { return std::uint64_t{static_cast<std::uint16_t>(node)}; };
    return Random::mixed(site.stack->hash ^ part(site.allocated_on) << 32 ^ part(site.pages_on) << 16 ^
                         part(site.freed_on));
}

namespace {

SiteUse* use_of(Table<SiteUse>& table, const Site& site) {
    SiteUse* const use = table.find_or_add(site);
    if (use != nullptr) use->site = site;
    return use;
}

}  // namespace

bool Store::add(Block block, const Stack& stack) {
    os::Guard guard(lock_);
    block.stack = stacks_.keep(stack);
    Block* const place = block.stack == nullptr ? nullptr : live_.find_or_add(block.address);
    if (place == nullptr) {
        count_lost();
        return false;
    }
    *place = block;
    return true;
}

void Store::put_back(const Block& block) {
    os::Guard guard(lock_);
    if (Block* const place = live_.find_or_add(block.address)) *place = block;
    else count_lost();
}

Block Store::take_out(const void* p) {
    os::Guard guard(lock_);
    Block* const found = live_.find(p);
    if (found == nullptr) return {};
    const Block block = *found;
    live_.remove(found);
    return block;
}

Block Store::take_out_of(const void* heap, std::size_t& place) {
    os::Guard guard(lock_);
    Block* const found = live_.find_from(place, [=](const Block& block) { return block.heap == heap; });
    if (found == nullptr) return {};
    const Block block = *found;
    live_.remove(found);
    return block;
}

void Store::set_size(const void* p, Bytes size) {
    os::Guard guard(lock_);
    if (Block* const found = live_.find(p)) found->size = size;
}

void Store::add_freed(const Block& block, OsNode pages_on, OsNode freed_on) {
    os::Guard guard(lock_);
    SiteUse* const use = use_of(freed_, {block.stack, block.allocated_on, pages_on, freed_on});
    if (use != nullptr) use->allocated.add(block.objects, block.size);
    else count_lost();
}

std::size_t Store::live() {
    os::Guard guard(lock_);
    return live_.size();
}

bool Store::sum_up(Table<SiteUse>& into, PagesOf pages_of) {
    os::Guard guard(lock_);
    bool complete = true;
    freed_.for_each([&](const SiteUse& freed) {
        if (SiteUse* const use = use_of(into, freed.site)) use->allocated = freed.allocated;
        else complete = false;
    });
    live_.for_each([&](const Block& block) {
        SiteUse* const use = use_of(into, {block.stack, block.allocated_on, pages_of(block), not_freed});
        if (use == nullptr) {
            complete = false;
            return;
        }
        use->allocated.add(block.objects, block.size);
        use->in_use.add(block.objects, block.size);
    });
    return complete;
}

}  // namespace numalloc::profile

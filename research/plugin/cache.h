// SPDX-License-Identifier: GPL-2.0-or-later
// Caches with sets and ways, of which the least recently used way is given up.
#pragma once
#include <cstdint>
#include <vector>

namespace scope {

struct Geometry {
    uint64_t entries;
    unsigned ways;

    uint64_t sets() const { return entries / ways; }
};

constexpr uint32_t NO_SLOT = ~0u;

// Key: the number of a line or page, less than the largest of its type. Payload: what is kept for each.
template <class Key, class Payload> class SetCache {
public:
    explicit SetCache(Geometry geometry)
        : ways_(geometry.ways),
          sets_(geometry.sets()),
          power_((sets_ & (sets_ - 1)) == 0),
          keys_(geometry.entries, EMPTY),
          ages_(geometry.entries, 0),
          clocks_(sets_, 1),
          payloads_(geometry.entries) {}

    uint32_t find(Key key) const {
        const uint64_t first = first_of(key);
        for (unsigned way = 0; way < ways_; ++way)
            if (keys_[first + way] == key) return static_cast<uint32_t>(first + way);
        return NO_SLOT;
    }

    // As find, and the slot is now the most recently used.
    uint32_t use(Key key) {
        const uint32_t slot = find(key);
        if (slot != NO_SLOT) touch(slot);
        return slot;
    }

    // A slot for a key that is not there: an empty one if there is one, else the least recently used, whose
    // key and payload are still in it.
    uint32_t room(Key key) const {
        const uint64_t first = first_of(key);
        uint64_t oldest = first;
        for (uint64_t slot = first; slot < first + ways_; ++slot) {
            if (keys_[slot] == EMPTY) return static_cast<uint32_t>(slot);
            if (ages_[slot] < ages_[oldest]) oldest = slot;
        }
        return static_cast<uint32_t>(oldest);
    }

    void put(uint32_t slot, Key key, const Payload& payload) {
        keys_[slot] = key;
        payloads_[slot] = payload;
        touch(slot);
    }

    void touch(uint32_t slot) {
        uint32_t& clock = clocks_[slot / ways_];
        if (ages_[slot] != clock) ages_[slot] = ++clock;
    }

    void remove(uint32_t slot) { keys_[slot] = EMPTY; }
    bool empty(uint32_t slot) const { return keys_[slot] == EMPTY; }
    Key key(uint32_t slot) const { return keys_[slot]; }
    Payload& operator[](uint32_t slot) { return payloads_[slot]; }
    uint32_t slots() const { return static_cast<uint32_t>(keys_.size()); }
    // Keys that differ below this power of two are in different sets.
    uint64_t partition() const { return power_ ? sets_ : 1; }

private:
    static constexpr Key EMPTY = static_cast<Key>(~Key{0});

    uint64_t first_of(Key key) const { return (power_ ? key & (sets_ - 1) : key % sets_) * ways_; }

    unsigned ways_;
    uint64_t sets_;
    bool power_;
    std::vector<Key> keys_;
    std::vector<uint32_t> ages_;
    std::vector<uint32_t> clocks_;  // of each set
    std::vector<Payload> payloads_;
};

// Which words of four bytes of a line were read and written: a bit for each, the written ones in the upper half.
using Words = uint32_t;
constexpr unsigned WORDS_OF_LINE = 16;
constexpr Words touched(Words use) { return (use | use >> WORDS_OF_LINE) & 0xffff; }
constexpr Words written(Words use) { return use >> WORDS_OF_LINE; }

// The first level, by virtual addresses: almost every access ends in hit(), so that has to be short.
class L1 {
public:
    explicit L1(Geometry geometry)
        : ways_(geometry.ways),
          mask_(geometry.sets() - 1),
          tags_(geometry.entries, EMPTY),
          use_(geometry.entries, 0),
          ages_(geometry.entries, 0),
          links_(geometry.entries, NO_SLOT),
          latest_(geometry.sets()),
          clocks_(geometry.sets(), 1) {
        for (uint32_t set = 0; set < latest_.size(); ++set) latest_[set] = set * ways_;
    }

    // `line`: the virtual address over 64. `words`: in the lower half. Only the way that its set used last is
    // looked at; a line that may not be written yet is no hit for a store.
    template <bool STORE> bool hit(uint64_t line, Words words) {
        const uint32_t slot = latest_[line & mask_];
        const uint64_t tag = tags_[slot];
        if ((STORE ? tag : tag | WRITABLE) != (line << 1 | WRITABLE)) return false;
        use_[slot] |= STORE ? words << WORDS_OF_LINE : words;
        return true;
    }

    // Any way, which is then the one used last.
    uint32_t use(uint64_t line) {
        const uint32_t first = static_cast<uint32_t>(line & mask_) * ways_;
        for (uint32_t slot = first; slot < first + ways_; ++slot)
            if (tags_[slot] >> 1 == line) {
                touch(slot);
                return slot;
            }
        return NO_SLOT;
    }

    uint32_t room(uint64_t line) const {
        const uint32_t first = static_cast<uint32_t>(line & mask_) * ways_;
        uint32_t oldest = first;
        for (uint32_t slot = first; slot < first + ways_; ++slot) {
            if (tags_[slot] == EMPTY) return slot;
            if (ages_[slot] < ages_[oldest]) oldest = slot;
        }
        return oldest;
    }

    // `link`: where the line lies in the second level.
    void put(uint32_t slot, uint64_t line, bool writable, uint32_t link) {
        tags_[slot] = line << 1 | (writable ? WRITABLE : 0);
        use_[slot] = 0;
        links_[slot] = link;
        touch(slot);
    }

    // Any way.
    bool hit_any(uint64_t line, Words words, bool store) {
        const uint32_t slot = use(line);
        if (slot == NO_SLOT || (store && !writable(slot))) return false;
        add(slot, words, store);
        return true;
    }

    void add(uint32_t slot, Words words, bool store) { use_[slot] |= store ? words << WORDS_OF_LINE : words; }
    Words take(uint32_t slot) {
        const Words use = use_[slot];
        use_[slot] = 0;
        return use;
    }
    bool empty(uint32_t slot) const { return tags_[slot] == EMPTY; }
    bool writable(uint32_t slot) const { return tags_[slot] & WRITABLE; }
    void set_writable(uint32_t slot, bool writable) {
        tags_[slot] = (tags_[slot] & ~WRITABLE) | (writable ? WRITABLE : 0);
    }
    uint32_t link(uint32_t slot) const { return links_[slot]; }
    uint64_t line(uint32_t slot) const { return tags_[slot] >> 1; }
    void remove(uint32_t slot) { tags_[slot] = EMPTY; }
    uint32_t slots() const { return static_cast<uint32_t>(tags_.size()); }

private:
    static constexpr uint64_t WRITABLE = 1;
    static constexpr uint64_t EMPTY = ~uint64_t{1};  // no address has this line, and it may not be written

    void touch(uint32_t slot) {
        const uint32_t set = slot / ways_;
        latest_[set] = slot;
        if (ages_[slot] != clocks_[set]) ages_[slot] = ++clocks_[set];
    }

    uint32_t ways_;
    uint64_t mask_;
    std::vector<uint64_t> tags_;
    std::vector<Words> use_;
    std::vector<uint32_t> ages_;
    std::vector<uint32_t> links_;
    std::vector<uint32_t> latest_;
    std::vector<uint32_t> clocks_;
};

}  // namespace scope

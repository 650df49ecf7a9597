// SPDX-License-Identifier: GPL-2.0-or-later
#include "report.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace scope {
namespace {

constexpr size_t WORST_LINES = 50;

class Writer {
public:
    explicit Writer(const Settings& settings) : nodes_(settings.topology.nodes), sample_(settings.sample) {}

    Writer& operator<<(const char* text) { return text_ += text, *this; }
    Writer& operator<<(uint64_t number) {
        char digits[24];
        text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
        return *this;
    }
    Writer& hex(uint64_t number) {
        char text[24];
        snprintf(text, sizeof text, "\"0x%llx\"", static_cast<unsigned long long>(number));
        return *this << text;
    }
    Writer& quoted(const std::string& text) {
        text_ += '"';
        for (const char c : text) {
            if (c == '"' || c == '\\') text_ += '\\';
            if (c == '\n') text_ += "\\n";
            else if (static_cast<unsigned char>(c) >= ' ') text_ += c;
        }
        text_ += '"';
        return *this;
    }
    // Elements with commas between them.
    template <class Range, class Each> Writer& list(const Range& range, Each each) {
        text_ += '[';
        bool first = true;
        for (const auto& element : range) {
            if (!first) text_ += ", ";
            first = false;
            each(element);
        }
        text_ += ']';
        return *this;
    }
    Writer& numbers(const std::vector<unsigned>& range) {
        return list(range, [&](unsigned number) { *this << number; });
    }
    Writer& geometry(const char* name, const char* what, const Geometry& geometry, uint64_t unit) {
        *this << "\"" << name << "\": {\"" << what << "\": " << geometry.entries * unit;
        return *this << ", \"ways\": " << geometry.ways << "}";
    }

    // The names and numbers without the braces. What caches saw is that of one in `sample` sets.
    Writer& counts(const Counts& counts) {
        const char* before = "";
#define SCOPE_WRITE(name) *this << before << "\"" #name "\": " << counts.name * scale(#name), before = ", ";
        SCOPE_NUMBERS(SCOPE_WRITE)
#undef SCOPE_WRITE
#define SCOPE_WRITE(name)                                                                                      \
    *this << before << "\"" #name "\": [";                                                                     \
    for (unsigned node = 0; node < nodes_; ++node) *this << (node ? ", " : "") << counts.name[node] * sample_; \
    *this << "]";
        SCOPE_BY_NODE(SCOPE_WRITE)
#undef SCOPE_WRITE
        *this << ", \"causes\": {", before = "";
#define SCOPE_WRITE(name) *this << before << "\"" #name "\": " << counts.causes.name * sample_, before = ", ";
        SCOPE_CAUSES(SCOPE_WRITE)
#undef SCOPE_WRITE
        *this << "}, \"tlb\": {", before = "";
#define SCOPE_WRITE(name) *this << before << "\"" #name "\": " << counts.tlb.name, before = ", ";
        SCOPE_TLB(SCOPE_WRITE)
#undef SCOPE_WRITE
        return *this << "}";
    }

    std::string take() { return std::move(text_); }

private:
    uint64_t scale(std::string_view name) const {
        return name == "instructions" || name == "loads" || name == "stores" ? 1 : sample_;
    }

    unsigned nodes_;
    uint64_t sample_;
    std::string text_;
};

void write_machine(Writer& to, const Settings& settings) {
    const Topology& topology = settings.topology;
    constexpr uint64_t line = 1 << LINE_BITS;
    to << "\"machine\": {\"nodes\": " << topology.nodes << ", \"node_of_cpu\": ";
    to.numbers(topology.node_of_cpu) << ", \"llc_of_cpu\": ";
    to.numbers(topology.llc_of_cpu) << ", \"line\": " << line << ", ";
    to.geometry("l1", "bytes", settings.caches.l1, line) << ", ";
    to.geometry("l2", "bytes", settings.caches.l2, line) << ", ";
    to.geometry("llc", "bytes", settings.caches.llc, line) << ", \"tlb\": {";
    to.geometry("l1_4k", "entries", settings.tlb.l1_4k, 1) << ", ";
    to.geometry("l1_2m", "entries", settings.tlb.l1_2m, 1) << ", ";
    to.geometry("l2", "entries", settings.tlb.l2, 1) << "}}";
}

void write_threads(Writer& to, const Totals& totals) {
    std::vector<const Thread*> counted;  // others had ended when the window began, or are another process's
    for (const Thread& thread : totals.threads)
        if (thread.counts.instructions) counted.push_back(&thread);
    to.list(counted, [&](const Thread* one) {
        const Thread& thread = *one;
        const auto most = std::max_element(thread.instructions_on.begin(), thread.instructions_on.end());
        const auto node = static_cast<uint64_t>(most - thread.instructions_on.begin());
        to << "{\"thread\": " << thread.number << ", \"node_of_most\": " << node << ", ";
        to.counts(thread.counts) << "}";
    });
}

// Where something missed, with all counts, apart for the allocator's objects and all else; elsewhere only what was done
// there: [address, loads, stores], [block, instructions].
void write_code(Writer& to, const Totals& totals, const std::vector<Executed>& executed) {
    std::vector<const Site*> missing, plain;
    for (const auto& [address, site] : totals.sites)
        if (site.counts[0] || site.counts[1]) missing.push_back(&site);
        else if (site.loads || site.stores) plain.push_back(&site);
    const auto by_address = [](const Site* a, const Site* b) { return a->address < b->address; };
    std::sort(missing.begin(), missing.end(), by_address);
    std::sort(plain.begin(), plain.end(), by_address);
    to << "\"code\": ";
    to.list(missing, [&](const Site* site) {
        const char* before = "";
        for (const bool objects : {false, true}) {
            if (!site->counts[objects]) continue;
            Counts counts = *site->counts[objects];
            if (!*before) counts.loads = site->loads, counts.stores = site->stores;
            to << before << "{\"at\": ";
            to.hex(site->address) << ", \"objects\": " << (objects ? "true" : "false") << ", ";
            to.counts(counts) << "}";
            before = ", ";
        }
    });
    to << ", \"touched\": ";
    to.list(plain, [&](const Site* site) {
        to << "[" << site->address << ", " << site->loads << ", " << site->stores << "]";
    });
    to << ", \"executed\": ";
    to.list(executed, [&](const Executed& block) { to << "[" << block.address << ", " << block.instructions << "]"; });
}

void write_object(Writer& to, const Object& object, uint64_t address) {
    if (!object.size) to << "null";
    else
        to << "{\"size\": " << object.size << ", \"offset\": " << address - object.start
           << ", \"thread\": " << uint64_t{object.thread} << ", \"freed\": " << (object.freed ? "true" : "false")
           << "}";
}

void write_false_sharing(Writer& to, const Caches& caches, uint32_t sample) {
    std::vector<FalseSharing> lines;
    for (const auto& [line, found] : caches.false_sharing()) lines.push_back(found);
    std::sort(lines.begin(), lines.end(), [](const FalseSharing& a, const FalseSharing& b) {
        return a.times != b.times ? a.times > b.times : a.line < b.line;
    });
    if (lines.size() > WORST_LINES) lines.resize(WORST_LINES);
    to << "\"false_sharing\": ";
    to.list(lines, [&](const FalseSharing& found) {
        std::vector<unsigned> nodes;
        for (unsigned node = 0; node < MOST_NODES; ++node)
            if (found.nodes >> node & 1) nodes.push_back(node);
        to << "{\"line\": ";
        to.hex(found.line) << ", \"first\": ";
        to.hex(found.line + found.first) << ", \"second\": ";
        to.hex(found.line + found.second) << ", \"nodes\": ";
        to.numbers(nodes) << ", \"times\": " << found.times * sample << ", \"class\": ";
        const unsigned places[] = {found.first, found.second};
        unsigned which = 0;
        to.list(found.objects, [&](const Object& object) { write_object(to, object, found.line + places[which++]); });
        to << "}";
    });
}

void write_stacks(Writer& to, const StackSamples& samples, uint32_t sample) {
    to << "\"stacks\": {\"lines_each\": " << samples.every() * sample << ", \"samples\": ";
    to.list(samples.all(), [&](const StackSample& one) {
        to << "{\"at\": ";
        to.hex(one.address) << ", \"transfer\": " << (one.transfer ? "true" : "false") << ", \"registers\": ";
        to.list(one.registers, [&](uint64_t value) { to << value; });
        to << ", \"stack\": \"";
        for (const uint8_t byte : one.stack) {
            const char digits[] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15], 0};
            to << digits;
        }
        to << "\"}";
    });
    to << "}, ";
}

}  // namespace

void Totals::clear() {
    for (Counts& counts : cpus) counts = {};
    for (Thread& thread : threads) thread.counts = {}, thread.instructions_on = {};
    for (auto& [address, site] : sites) site.loads = site.stores = 0, site.counts[0] = site.counts[1] = nullptr;
    sites_counts.clear();
    stacks.clear();
    nobody = {};
}

std::string json(const Settings& settings, const Totals& totals, const std::vector<Executed>& executed,
                 const Caches& caches, const Run& run) {
    constexpr const char* windows[] = {"main", "markers", "whole"};
    Writer to(settings);
    char time[96];
    snprintf(time, sizeof time, "\"seconds_of_host\": %.6f, \"cpu_seconds_of_host\": %.6f", run.seconds,
             run.cpu_seconds);
    to << "{\"version\": 2, \"run\": " << run.number << ", ";
    write_machine(to, settings);
    to << ", \"window\": \"" << windows[static_cast<int>(settings.window)]
       << "\", \"kernel\": " << (settings.kernel ? "true" : "false")
       << ", \"objects\": " << (settings.objects ? "true" : "false") << ", \"sample\": " << settings.sample << ", "
       << time << ", \"status\": " << static_cast<uint64_t>(run.status) << ", \"cpus\": ";
    unsigned cpu = 0;
    to.list(totals.cpus, [&](const Counts& counts) {
        to << "{\"cpu\": " << cpu++ << ", ";
        to.counts(counts) << "}";
    });
    to << ", \"threads\": ";
    write_threads(to, totals);
    to << ", ";
    write_false_sharing(to, caches, settings.sample);
    to << ", ";
    if (settings.stacks) write_stacks(to, totals.stacks, settings.sample);
    write_code(to, totals, executed);
    to << ", \"maps\": ";
    to.quoted(run.maps) << "}\n";
    return to.take();
}

}  // namespace scope

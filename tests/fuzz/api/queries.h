// Calls that only ask, or change what no block depends on: the machine, sets of nodes, options, statistics.
#pragma once

#include <malloc.h>
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "api/input.h"
#include "numalloc/numalloc.h"

namespace fuzz {

constexpr int nodes = 4;

// Blocks that the heap profile records lie apart, and guarded ones too, which have no byte more than asked for.
inline const bool is_profiled = std::getenv("NUMALLOC_PROFILE") != nullptr;
inline const bool is_guarded = std::getenv("NUMALLOC_GUARDED") != nullptr;

inline void must(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "api: %s\n", what);
    std::abort();
}

// A node that there is; of 16 one that there is not.
inline int draw_node(Input& in) {
    const std::size_t die = in.below(16);
    return die == 15 ? static_cast<int>(in.below(4096)) - 2048 : static_cast<int>(die % nodes);
}
inline bool is_node(int node) { return node >= 0 && node < nodes; }

// Any of the sixteen, the empty one too; of 16 with a node that there is not.
inline numalloc_node_set draw_set(Input& in) {
    numalloc_node_set set{};
    set.word[0] = in.below(16);
    if (in.below(16) == 15) numalloc_node_set_add(&set, static_cast<int>(in.below(1024)));
    return set;
}
inline bool is_usable(const numalloc_node_set& set) {
    bool only_ours = set.word[0] != 0 && set.word[0] < 1 << nodes;
    for (std::size_t i = 1; i < sizeof set.word / sizeof set.word[0]; ++i) only_ours = only_ours && set.word[i] == 0;
    return only_ours;
}

inline std::string draw_text(Input& in, std::size_t most, const char* letters) {
    std::string text;
    const std::size_t count = std::strlen(letters);
    for (std::size_t n = in.below(most + 1); n > 0; --n) text += letters[in.below(count)];
    return text;
}

inline void ask_machine(Input& in) {
    const int from = draw_node(in), to = draw_node(in);
    int list[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const int room = static_cast<int>(in.below(8));
    must(numalloc_nodes(list, room) == nodes && numalloc_node_count() == nodes, "there are four nodes");
    for (int i = 0; i < 8; ++i) must(list[i] == (i < room && i < nodes ? i : -1), "numalloc_nodes writes what fits");
    const int distance = numalloc_distance(from, to);
    must((distance >= 0) == (is_node(from) && is_node(to)), "distances of nodes that there are");
    must(distance < 0 || (distance == 10) == (from == to), "10 to the node itself");
    cpu_set_t cpus;
    (void)numalloc_node_cpus(from, in.below(sizeof cpus + 1), &cpus);
    must(is_node(from) || numalloc_node_free_memory(from) == -1, "free memory of no node");
    must(is_node(numalloc_current_node()), "the current node");
    must(numalloc_version() == NUMALLOC_VERSION, "version");
}

inline void ask_sets(Input& in) {
    numalloc_node_set set{};
    const std::string text = draw_text(in, 24, "0123459-,!+ alx");
    char printed[8192];
    if (numalloc_node_set_parse(text.c_str(), &set) == 0) {
        const int length = numalloc_node_set_print(&set, printed, sizeof printed);
        must(length >= 0 && std::strlen(printed) == static_cast<std::size_t>(length), "the length of a printed set");
        numalloc_node_set again{};
        must(numalloc_node_set_parse(printed, &again) == 0 && std::memcmp(&set, &again, sizeof set) == 0,
             "a printed set is read as it was");
        char cut[8];
        const std::size_t room = 1 + in.below(sizeof cut);
        must(numalloc_node_set_print(&set, cut, room) == length && std::strlen(cut) < room, "a set is cut to its room");
    } else {
        must(numalloc_node_set_count(&set) == 0, "a text that is refused leaves the set");
    }
    const auto kind = static_cast<numalloc_node_kind>(in.below(8));
    const int count = numalloc_node_set_of_kind(kind, &set);
    must(count < 0 || count == numalloc_node_set_count(&set), "nodes of a kind");
}

inline void ask_options(Input& in) {
    constexpr const char* delays[] = {"0", "1", "10", "1000", "-1"};
    constexpr const char* names[] = {"purge_delay", "NUMALLOC_PURGE_DELAY", "thp", "no_option", "memory", ""};
    if (in.below(2) == 0) (void)numalloc_option_set("purge_delay", delays[in.below(5)]);
    else (void)numalloc_option_set("purge_delay", draw_text(in, 12, "0123456789 -mskx").c_str());
    must(numalloc_option_set("thp", "on") == -1 && errno == EPERM, "an option that is read once");
    const std::string flag = draw_text(in, 4, "01onfyes");
    (void)numalloc_option_set("realloc_keeps_node", flag.c_str());
    char text[16];
    const char* const name = names[in.below(6)];
    const std::size_t room = 1 + in.below(sizeof text);
    const int length = numalloc_option_get(name, text, room);
    must(length < 0 || std::strlen(text) ==
                           (static_cast<std::size_t>(length) < room ? static_cast<std::size_t>(length) : room - 1),
         "an option is cut to its room");
}

inline void ask_statistics(Input& in) {
    numalloc_node_statistics of_node;
    numalloc_class_statistics of_class;
    numalloc_process_statistics of_process;
    const int node = in.below(8) < 2 ? -1 - static_cast<int>(in.below(2)) : draw_node(in);
    const bool known = is_node(node) || node == NUMALLOC_ALL_NODES || node == NUMALLOC_INTERLEAVED;
    switch (in.below(8)) {
        case 0:
        case 1:
            must((numalloc_statistics(node, &of_node, in.below(sizeof of_node + 1)) == 0) == known,
                 "statistics of a node");
            break;
        case 2:
        case 3: {
            const std::size_t size = in.below(1 << 20);
            const long long object = numalloc_statistics_of_class(node, size, &of_class, in.below(sizeof of_class + 1));
            must((object >= 0) == (known && size <= 512 * 1024), "statistics of a class");
            must(object < 0 || static_cast<std::size_t>(object) >= size, "the class serves the size");
            break;
        }
        case 4:
            must(numalloc_statistics_of_process(&of_process, in.below(sizeof of_process + 1)) == 0,
                 "statistics of the process");
            break;
        case 5: {
            static thread_local char text[64 * 1024];
            const std::size_t room = in.below(2) == 0 ? sizeof text : 1 + in.below(2000);
            std::memset(text, 'x', sizeof text);
            const long long length =
                numalloc_statistics_text(in.below(2) == 0 ? NUMALLOC_TEXT : NUMALLOC_JSON, text, room);
            must(length > 0 && std::strlen(text) < room && (room == sizeof text || text[room] == 'x'),
                 "statistics are cut to their room");
            break;
        }
        case 6: must(numalloc_statistics_write("/dev/null") == 0, "statistics into a file"); break;
        default:
            (void)mallinfo2();
            if (std::FILE* const nowhere = std::fopen("/dev/null", "w")) {
                must(malloc_info(0, nowhere) == 0, "malloc_info");
                std::fclose(nowhere);
            }
            must(is_profiled || (numalloc_profile_dump("/dev/null") == -1 && errno == ENOTSUP), "there is no profile");
            break;
    }
}

// Requests that nobody can serve.
inline void ask_too_much(Input& in) {
    const std::size_t size = SIZE_MAX - in.below(1 << 24);
    const std::size_t half = SIZE_MAX / 2 + 1 + in.below(1 << 20);
    void* p = nullptr;
    errno = 0;
    switch (in.below(8)) {
        case 0: p = malloc(size); break;
        case 1: p = calloc(half, 2 + in.below(8)); break;
        case 2: p = reallocarray(nullptr, half, 2); break;
        case 3: p = aligned_alloc(std::size_t{1} << in.below(64), half); break;
        case 4: p = numalloc_malloc_on_node(size, 1); break;
        case 5: p = psm_calloc(half, 2, 0); break;
        case 6: p = numalloc_calloc_interleaved(half, 2); break;
        default: must(numalloc_good_size(size) == 0, "no block has that size"); return;
    }
    must(p == nullptr && errno == ENOMEM, "too much is ENOMEM");
}

}  // namespace fuzz

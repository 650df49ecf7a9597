#include "statistics/page.h"

#include <atomic>
#include <cstring>

#include "base/text.h"
#include "heap/node/process_heap.h"
#include "os/affinity.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/filter.h"
#include "statistics/gathering.h"

namespace numalloc {

namespace {

constexpr char names[] =
#define NUMALLOC_STATISTIC(name, unit, what) #name "\0"
#include "numalloc/statistics.def"
    "\0"
#define NUMALLOC_CLASS_STATISTIC(name, unit, what) #name "\0"
#include "numalloc/statistics.def"
    "\0"
#define NUMALLOC_PROCESS_STATISTIC(name, unit, what) #name "\0"
#include "numalloc/statistics.def"
    ;

struct NodeRecord {
    std::int64_t node;
    NodeStatistics numbers;
};
struct ClassRecord {
    std::uint32_t node_record;
    std::uint32_t object_bytes;
    ClassStatistics numbers;
};

struct Header {
    char magic[8];
    std::uint32_t version;
    std::uint32_t header_bytes;
    std::uint32_t node_records;
    std::uint32_t node_record_bytes;
    std::uint32_t class_records;
    std::uint32_t class_record_bytes;
    std::uint64_t process_start;
    std::atomic<std::uint64_t> sequence;
    std::uint64_t updated_at;
    std::uint32_t process_record_bytes;
    std::uint32_t unused;
};
static_assert(sizeof(Header) == 64);

constexpr Bytes names_at = sizeof(Header) + sizeof(std::uint32_t);
constexpr Bytes process_at = align_up(names_at + sizeof names, 8);
constexpr Bytes nodes_at = process_at + sizeof(ProcessStatistics);
constexpr unsigned class_records = [] {
    unsigned records = 0;
    for (unsigned c = 1; c < class_count; ++c) records += counted_with(c) == c ? 1 : 0;
    return records;
}();
Bytes classes_at(unsigned heaps) { return nodes_at + heaps * sizeof(NodeRecord); }
Bytes page_bytes(unsigned heaps) {
    return align_up(classes_at(heaps) + Bytes{heaps} * class_records * sizeof(ClassRecord), os::page_size());
}

constexpr std::uint64_t part_of_time = 100;

std::atomic<bool> writing{false};
std::atomic<int> owner{0};  // the process that has made the page, or tried to
// Used only by the thread that has set `writing`.
Header* page = nullptr;
std::uint64_t not_before = 0;  // nanoseconds

// As created: the user ID may have changed since.
char path[64] = {};

// false if it cannot be created; a process tries only once.
bool make_page(int process) {
    owner.store(process, std::memory_order_relaxed);
    const unsigned heaps = process_heap.counted_heaps();
    // The parent's page, or one that was removed for an exec that failed.
    if (page != nullptr) os::unmap(page, page_bytes(heaps));
    Text<sizeof path> name;
    name << "/dev/shm/numalloc-" << os::user_id() << '-' << process;
    memcpy(path, name.c_str(), name.size() + 1);
    page = static_cast<Header*>(os::share_memory(path, page_bytes(heaps)));
    if (page == nullptr) return false;
    memcpy(page->magic, "NUMASTAT", sizeof page->magic);
    page->version = 2;
    page->header_bytes = sizeof(Header);
    page->node_records = heaps;
    page->node_record_bytes = sizeof(NodeRecord);
    page->class_records = heaps * class_records;
    page->class_record_bytes = sizeof(ClassRecord);
    page->process_record_bytes = sizeof(ProcessStatistics);
    page->process_start = os::process_start();
    char* const text = reinterpret_cast<char*>(page) + sizeof(Header);
    const std::uint32_t length = sizeof names;
    memcpy(text, &length, sizeof length);
    memcpy(text + sizeof length, names, sizeof names);
    return true;
}

void fill(const Gathering& gathered) {
    char* const start = reinterpret_cast<char*>(page);
    auto* const process = reinterpret_cast<ProcessStatistics*>(start + process_at);
    auto* const nodes = reinterpret_cast<NodeRecord*>(start + nodes_at);
    auto* of_class = reinterpret_cast<ClassRecord*>(start + classes_at(gathered.heaps()));
    page->sequence.fetch_add(1, std::memory_order_acq_rel);
#if !defined(__x86_64__)
    // Elsewhere the atomic operation orders later reads after it, but not later writes.
    std::atomic_thread_fence(std::memory_order_release);
#endif
    *process = process_statistics();
    for (unsigned n = 0; n < gathered.heaps(); ++n) {
        nodes[n] = {gathered.in_use(n) ? outer_number(n) : -1, gathered.of(n).node};
        for (unsigned c = 1; c < class_count; ++c)
            if (counted_with(c) == c)
                *of_class++ = {n, static_cast<std::uint32_t>(shape_of(ClassId{c}).size), gathered.of(n).of_class[c]};
    }
    page->updated_at = os::nanoseconds();
    page->sequence.fetch_add(1, std::memory_order_release);
}

}  // namespace

void refresh_statistics_page() {
    if (os::filtered()) return;
    if (writing.exchange(true, std::memory_order_acquire)) return;
    const std::uint64_t began = os::nanoseconds();
    const int process = os::process_id();
    if (began >= not_before &&
        (process == owner.load(std::memory_order_relaxed) ? page != nullptr : make_page(process))) {
        const Gathering gathered(Gathering::Depth::threads);
        if (gathered.heaps() > 0) fill(gathered);
        not_before = began + part_of_time * (os::nanoseconds() - began);
    }
    writing.store(false, std::memory_order_release);
}

void remove_statistics_page() {
    if (os::filtered()) return;
    if (const int made = owner.load(std::memory_order_relaxed); made != 0 && made == os::process_id())
        os::remove_file(path);
}

void remake_statistics_page() {
    if (owner.load(std::memory_order_relaxed) == 0) return;
    int process = os::process_id();
    owner.compare_exchange_strong(process, 0, std::memory_order_relaxed);
}

void leave_statistics_page() {
    writing.store(false, std::memory_order_relaxed);
    not_before = 0;
}

}  // namespace numalloc

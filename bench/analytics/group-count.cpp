// COUNT by group, the distributive aggregation W2 of the study of allocators and placement for data analytics
// on NUMA machines: a group is one small node, and partial counts are added up.
#include "analytics/group.h"

namespace {

struct Counted {
    std::uint64_t count = 0;
    void add(std::uint64_t) { ++count; }
    void merge(const Counted& other) { count += other.count; }
    std::uint64_t result() const { return count; }
};

void check(const std::vector<analytics::Record>& records, const analytics::Answer& answer) {
    analytics::Answer right(answer.size());
    for (const analytics::Record& record : records) ++right[record.key];
    for (std::uint64_t key = 0; key < right.size(); ++key) {
        if (answer[key] != (right[key] == 0 ? analytics::no_group : right[key])) {
            bench::fail("the count of group %llu is wrong", static_cast<unsigned long long>(key));
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    return analytics::group<Counted>(command, check);
}

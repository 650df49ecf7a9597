// MEDIAN by group, the holistic aggregation W1 of the study of allocators and placement for data analytics on
// NUMA machines: all values of a group are kept until the end, in an array that grows by realloc.
#include <algorithm>

#include "analytics/group.h"

namespace {

// Twice the median, which is a whole number also where the median lies between two values.
std::uint64_t twice_median(std::uint64_t* first, std::uint64_t count) {
    std::uint64_t* const middle = first + count / 2;
    std::nth_element(first, middle, first + count);
    return *middle + (count % 2 != 0 ? *middle : *std::max_element(first, middle));
}

class Values {
public:
    Values() = default;
    Values(const Values&) = delete;
    Values& operator=(const Values&) = delete;
    ~Values() { std::free(values_); }

    void add(std::uint64_t value) {
        if (count_ == room_) grow(room_ == 0 ? 2 : 2 * room_);
        values_[count_++] = value;
    }
    void merge(Values& other) {
        if (count_ + other.count_ > room_) grow(count_ + other.count_);
        std::copy_n(other.values_, other.count_, values_ + count_);
        count_ += other.count_;
        std::free(other.values_);
        other.values_ = nullptr;
        other.count_ = other.room_ = 0;
    }
    std::uint64_t result() { return twice_median(values_, count_); }

private:
    void grow(std::uint64_t room) {
        const std::size_t bytes = room * sizeof *values_;
        values_ = static_cast<std::uint64_t*>(bench::checked(std::realloc(values_, bytes), bytes));
        room_ = room;
    }

    std::uint64_t* values_ = nullptr;
    std::uint64_t count_ = 0;
    std::uint64_t room_ = 0;
};

// All values beside each other by group, counted first.
void check(const std::vector<analytics::Record>& records, const analytics::Answer& answer) {
    std::vector<std::uint64_t> ends(answer.size() + 1), values(records.size());
    for (const analytics::Record& record : records) ++ends[record.key + 1];
    for (std::uint64_t key = 0; key < answer.size(); ++key) ends[key + 1] += ends[key];
    for (const analytics::Record& record : records) values[ends[record.key]++] = record.value;
    std::uint64_t first = 0;
    for (std::uint64_t key = 0; key < answer.size(); ++key) {
        const std::uint64_t count = ends[key] - first;
        if (answer[key] != (count == 0 ? analytics::no_group : twice_median(&values[first], count))) {
            bench::fail("the median of group %llu is wrong", static_cast<unsigned long long>(key));
        }
        first = ends[key];
    }
}

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    return analytics::group<Values>(command, check);
}

#include "heap/pages/written.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/bits.h"
#include "os/memory.h"

namespace numalloc {
namespace {

constexpr Bytes page = 4 * KiB;

class Memory {
public:
    explicit Memory(Bytes bytes)
        : bytes_(bytes),
          at_(static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
    ~Memory() { munmap(at_, bytes_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    // One byte in each of the pages from `first` on, somewhere in it.
    void write(Bytes first, Bytes pages, Bytes each = 1) {
        for (Bytes i = first; i < first + pages; i += each) at_[i * page + i * 97 % page] = 1;
    }
    // A write to one of them ends the test. Not where pages are longer.
    void protect(Bytes first, Bytes pages) {
        const bool done = os::page_size() > page || mprotect(at_ + first * page, pages * page, PROT_READ) == 0;
        EXPECT_TRUE(done);
    }
    char* at() const { return at_; }
    bool written() const { return mostly_written(at_, bytes_); }
    bool unused() const { return seems_unused(at_, bytes_); }

private:
    Bytes bytes_;
    char* at_;
};

TEST(MostlyWritten, SaysHowMuchIsUsed) {
    for (const Bytes bytes : {128 * KiB, 4 * MiB, 100 * MiB}) {
        const Bytes pages = bytes / page;
        Memory memory(bytes);
        EXPECT_FALSE(memory.written()) << bytes << ", fresh";
        memory.write(0, pages / 4);
        EXPECT_FALSE(memory.written()) << bytes << ", the first quarter";
        memory.write(pages / 4, pages / 2);
        EXPECT_TRUE(memory.written()) << bytes << ", three quarters";
        memory.write(0, pages);
        EXPECT_TRUE(memory.written()) << bytes << ", all";
    }
}

TEST(SeemsUnused, SaysWhetherThereIsMuchData) {
    for (const Bytes bytes : {32 * KiB, 4 * MiB, 100 * MiB}) {
        const Bytes pages = bytes / page;
        Memory memory(bytes);
        EXPECT_TRUE(memory.unused()) << bytes << ", fresh";
        memory.write(0, pages);
        EXPECT_FALSE(memory.unused()) << bytes << ", all";
    }
    for (const Bytes each : {2, 3, 4}) {
        Memory memory(64 * MiB);
        memory.write(0, 64 * MiB / page, each);
        EXPECT_FALSE(memory.unused()) << "one page in " << each;
    }
    Memory rare(64 * MiB);
    rare.write(0, 64 * MiB / page, 512);
    EXPECT_TRUE(rare.unused()) << "one page in 512";
}

TEST(MostlyWritten, NoRegularLayoutHidesFromIt) {
    for (const Bytes each : {4, 8, 16, 32, 64, 128, 512}) {
        Memory rare(64 * MiB);
        rare.write(0, 64 * MiB / page, each);
        EXPECT_FALSE(rare.written()) << "one page in " << each;
        Memory dense(64 * MiB);
        for (Bytes first = 1; first < each; ++first) dense.write(first, 64 * MiB / page - first, each);
        EXPECT_TRUE(dense.written()) << "all but one page in " << each;
    }
}

TEST(ClearWritten, WritesToNoPageThatIsZero) {
    for (const Bytes from : {Bytes{0}, Bytes{64}, page - 64})
        for (const Bytes bytes : {20 * page, 19 * page + 1, 19 * page + 9, 20 * page - 1}) {
            Memory memory(20 * page);
            memory.write(3, 2);
            memory.write(8, 12);
            memory.protect(0, 3);
            memory.protect(5, 3);
            clear_written(memory.at() + from, bytes - from);
            EXPECT_EQ(std::count(memory.at(), memory.at() + bytes, 0), static_cast<long>(bytes));
            const Bytes last = 19 * page + 19 * 97;  // the last byte that write() wrote
            EXPECT_EQ(memory.at()[last], last < bytes ? 0 : 1) << bytes << " from " << from;
        }
}

}  // namespace
}  // namespace numalloc

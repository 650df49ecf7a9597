// docs/statistics.md has what the tables have.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace {

struct Entry {
    std::string name, unit, what;
};

const Entry node[] = {
#define NUMALLOC_STATISTIC(name, unit, what) {#name, unit, what},
#include "numalloc/statistics.def"
};
const Entry of_class[] = {
#define NUMALLOC_CLASS_STATISTIC(name, unit, what) {#name, unit, what},
#include "numalloc/statistics.def"
};
const Entry process[] = {
#define NUMALLOC_PROCESS_STATISTIC(name, unit, what) {#name, unit, what},
#include "numalloc/statistics.def"
};

template <class Table>
void put(std::ostream& out, const char* heading, const Table& table) {
    out << "\n## " << heading << "\n\n| name | unit | what it counts |\n| --- | --- | --- |\n";
    for (const Entry& e : table) out << "| `" << e.name << "` | " << e.unit << " | " << e.what << " |\n";
}

std::string reference() {
    std::ostringstream out;
    put(out, "Of a node", node);
    put(out, "Of a size class on a node", of_class);
    put(out, "Of the process", process);
    return out.str();
}

// The page's own words stand before the tables.
TEST(StatisticsReference, IsCurrent) {
    const std::string path = NUMALLOC_SOURCE_DIR "/docs/statistics.md";
    std::ostringstream there;
    there << std::ifstream(path).rdbuf();
    const std::string text = there.str();
    const std::size_t tables = text.find("\n## Of a node\n");
    ASSERT_NE(tables, std::string::npos) << path << " has no tables";
    if (std::getenv("NUMALLOC_UPDATE") != nullptr) std::ofstream(path) << text.substr(0, tables) << reference();
    else EXPECT_EQ(text.substr(tables), reference()) << "run: NUMALLOC_UPDATE=1 statistics_reference_test";
}

TEST(StatisticsReference, EveryNameIsOnlyOnceInItsTable) {
    std::set<std::string> names;
    for (const Entry& e : node) EXPECT_TRUE(names.insert(e.name).second) << e.name;
}

}  // namespace

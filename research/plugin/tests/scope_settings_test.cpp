// SPDX-License-Identifier: GPL-2.0-or-later
#include "settings.h"

#include <gtest/gtest.h>

#include <fstream>

namespace scope {
namespace {

std::string read(std::vector<std::string> words, Settings& settings) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return read_settings(static_cast<int>(arguments.size()), arguments.data(), settings);
}

const std::vector<std::string> LEAST = {"out=/tmp/x", "node-of-cpu=0:0:1", "memory=0-8000000-0:100000000-108000000-1"};

std::string with(const std::string& word) {
    Settings settings;
    std::vector<std::string> words = LEAST;
    words.push_back(word);
    return read(words, settings);
}

TEST(ScopeSettings, KnowsTheMachine) {
    Settings settings;
    ASSERT_EQ(read(LEAST, settings), "");
    const Topology& topology = settings.topology;
    EXPECT_EQ(topology.nodes, 2u);
    EXPECT_EQ(topology.llc_of_cpu, topology.node_of_cpu);
    EXPECT_EQ(topology.lines(), (256u << 20) / 64);
    EXPECT_EQ(topology.home(topology.line_of(0x7ffffff)), 0u);
    EXPECT_EQ(topology.home(topology.line_of(0x100000000)), 1u);
    EXPECT_EQ(topology.line_of(0x8000000), NO_LINE);
    EXPECT_EQ(topology.line_of(uint64_t{1} << 50), NO_LINE);
}

TEST(ScopeSettings, TakesWhatIsRight) {
    for (const char* word : {"l1=49152/12", "llc=31457280/20", "sample=8", "window=markers", "quantum=1000",
                             "llc-of-cpu=0:1:2", "tlb-l2=2048/8", "stacks=1", "kernel=1", "children=1"})
        EXPECT_EQ(with(word), "") << word;
}

// What is said of a file with these lines.
std::string with_calls(const std::string& lines, Settings&& settings = {}) {
    const std::string path = testing::TempDir() + "/scope_calls";
    std::ofstream(path) << lines;
    std::vector<std::string> words = LEAST;
    words.push_back("calls=" + path);
    return read(words, settings);
}

TEST(ScopeSettings, KnowsWhereFunctionsBegin) {
    Settings settings;
    ASSERT_EQ(with_calls("malloc 650 803d31\nposix f80 00ff\n", std::move(settings)), "");
    ASSERT_EQ(settings.calls.size(), 2u);
    EXPECT_EQ(settings.calls[0].function, Function::MALLOC);
    EXPECT_EQ(settings.calls[0].code, (std::vector<uint8_t>{0x80, 0x3d, 0x31}));
    EXPECT_EQ(settings.calls[1].function, Function::POSIX);
    EXPECT_EQ(settings.calls[1].offset, 0xf80u);
    for (const char* lines : {"mallow 650 80", "malloc 1000 80", "malloc 650 8", "malloc 650 8x"})
        EXPECT_NE(with_calls(lines), "") << lines;
    EXPECT_EQ(with_calls(""), "");
}

TEST(ScopeSettings, NamesWhatIsWrong) {
    for (const char* word : {"l1=100/3", "l2=1048576", "sample=3", "window=never", "quantum=0", "stacks=2",
                             "nonsense=1", "nonsense", "llc-of-cpu=0:x:1", "memory=5-4-0", "node-of-cpu=99"})
        EXPECT_NE(with(word).find(word), std::string::npos) << word;
    EXPECT_NE(with("llc-of-cpu=0:1"), "");
    Settings settings;
    EXPECT_NE(read({"out=/tmp/x"}, settings), "");
}

}  // namespace
}  // namespace scope

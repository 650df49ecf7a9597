#include "options/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "options/print.h"
#include "os/messages.h"

namespace numalloc {
namespace {

std::vector<std::string> complaints;

Options parse(std::vector<const char*> environment) {
    complaints.clear();
    environment.push_back(nullptr);
    Options o;
    parse_options(o, environment.data(), [](const char* line) { complaints.push_back(line); });
    return o;
}

TEST(Options, DefaultsAreTheTables) {
    const Options o = parse({"PATH=/bin", "NULL=1", "NUMALLOC"});
    EXPECT_EQ(o.binding, Binding::automatic);
    EXPECT_EQ(o.binding_file, nullptr);
    EXPECT_EQ(o.memory_binding, MemoryBinding::preferred);
    EXPECT_EQ(o.memory.kind, MemoryPlacement::Kind::local);
    EXPECT_EQ(o.interleave, Interleave::off);
    EXPECT_EQ(o.thp, HugePages::automatic);
    EXPECT_EQ(o.purge_delay, 1000);
    EXPECT_EQ(o.reserve, 0u);
    EXPECT_FALSE(o.verbose);
    EXPECT_TRUE(complaints.empty());
}

TEST(Options, MemoryPlacementNamesNodes) {
    const auto said = [](const char* text) {
        MemoryPlacement m;
        m.kind = MemoryPlacement::Kind::bind;
        m.nodes.add(77);
        (void)parse_memory_placement(text, m);  // what is wrong leaves it alone
        return m;
    };
    using Kind = MemoryPlacement::Kind;
    EXPECT_EQ(said("local").kind, Kind::local);
    EXPECT_TRUE(said("local").nodes.empty());
    EXPECT_EQ(said("interleave").kind, Kind::interleave);
    EXPECT_EQ(said("preferred:5").kind, Kind::preferred);
    EXPECT_EQ(said("preferred:5").nodes.first(), 5u);
    EXPECT_EQ(said("preferred:5").nodes.count(), 1u);
    EXPECT_EQ(said("bind:0-2,1023").kind, Kind::bind);
    EXPECT_EQ(said("bind:0-2,1023").nodes.count(), 4u);
    EXPECT_TRUE(said("bind:0-2,1023").nodes.test(1023));
    for (const char* wrong :
         {"", "Local", "localx", "interleave:0", "preferred", "preferred:", "preferred:-1", "preferred:1,2",
          "preferred:1024", "bind", "bind:", "bind:1024", "bind:0-4000000", "bind:3-1", "bind:1,", "bind:1 "})
        EXPECT_TRUE(said(wrong).nodes.test(77)) << wrong;
}

TEST(Options, EachKindIsRead) {
    const Options o =
        parse({"NUMALLOC_BINDING=saturate", "NUMALLOC_BINDING_FILE=/etc/rules", "NUMALLOC_MEMORY_BINDING=strict",
               "NUMALLOC_THP=off", "NUMALLOC_PURGE_DELAY=2s", "NUMALLOC_RESERVE=64G", "NUMALLOC_VERBOSE=yes"});
    EXPECT_EQ(o.binding, Binding::saturate);
    EXPECT_STREQ(o.binding_file, "/etc/rules");
    EXPECT_EQ(o.memory_binding, MemoryBinding::strict);
    EXPECT_EQ(o.thp, HugePages::off);
    EXPECT_EQ(o.purge_delay, 2000);
    EXPECT_EQ(o.reserve, 64 * GiB);
    EXPECT_TRUE(o.verbose);
    EXPECT_TRUE(complaints.empty());
}

TEST(Options, ABadValueIsOneLineAndTheDefaultStays) {
    const Options o = parse({"NUMALLOC_BINDING=interleaved", "NUMALLOC_PURGE_DELAY=-2"});
    EXPECT_EQ(o.binding, Binding::automatic);
    EXPECT_EQ(o.purge_delay, 1000);
    ASSERT_EQ(complaints.size(), 2u);
    EXPECT_EQ(complaints[0],
              "NUMALLOC_BINDING=interleaved is not understood; accepted: auto, interleave, saturate, file, none. Using "
              "auto.");
}

TEST(Options, OfALongValueTheBeginningIsShown) {
    const std::string too_long = "NUMALLOC_BINDING=" + std::string(81, 'x'),
                      as_long = "NUMALLOC_BINDING=" + std::string(80, 'y');
    parse({too_long.c_str(), as_long.c_str()});
    ASSERT_EQ(complaints.size(), 2u);
    const std::string rest = " is not understood; accepted: auto, interleave, saturate, file, none. Using auto.";
    EXPECT_EQ(complaints[0], "NUMALLOC_BINDING=" + std::string(80, 'x') + "..." + rest);
    EXPECT_EQ(complaints[1], as_long + rest);
}

TEST(Options, AnEmptyValueIsNone) {
    EXPECT_EQ(parse({"NUMALLOC_BINDING="}).binding, Binding::automatic);
    EXPECT_TRUE(complaints.empty());
}

TEST(Options, AMisspeltNameIsOneLineAForeignOneNone) {
    parse({"NUMALLOC_BINDNG=none", "NUMALLOC_SOMETHING_ELSE=1", "NUMALLOC_binding=none"});
    ASSERT_EQ(complaints.size(), 1u);
    EXPECT_EQ(complaints[0], "NUMALLOC_BINDNG is not an option; did you mean NUMALLOC_BINDING?");
}

TEST(Options, OneIn) {
    std::uint32_t v = 5;
    for (const char* none : {"0", "off"}) EXPECT_TRUE(parse_OneIn(none, v) && v == 0) << none;
    for (const char* each : {"1", "1/1"}) EXPECT_TRUE(parse_OneIn(each, v) && v == 1) << each;
    for (const char* rare : {"5000", "1/5000"}) EXPECT_TRUE(parse_OneIn(rare, v) && v == 5000) << rare;
    EXPECT_TRUE(parse_OneIn("1/1000000000", v) && v == 1000000000);
    v = 5;
    for (const char* wrong : {"", "1/", "1/0", "2/3", "-1", "on", "1/x", "1/5 ", "1/1/1", "1/1000000001", "4294967297"})
        EXPECT_TRUE(!parse_OneIn(wrong, v) && v == 5) << wrong;
}

TEST(Options, Milliseconds) {
    std::int32_t v = 5;
    EXPECT_TRUE(parse_Milliseconds("0", v) && v == 0);
    EXPECT_TRUE(parse_Milliseconds("250ms", v) && v == 250);
    EXPECT_TRUE(parse_Milliseconds("3s", v) && v == 3000);
    EXPECT_TRUE(parse_Milliseconds("-1", v) && v == -1);
    for (const char* bad : {"", "s", "-", "1m", "1 s", "99999999999", "3000000s", "1.5s"})
        EXPECT_FALSE(parse_Milliseconds(bad, v)) << bad;
}

TEST(Options, Sizes) {
    Bytes v = 5;
    EXPECT_TRUE(parse_Size("4096", v) && v == 4096);
    EXPECT_TRUE(parse_Size("4k", v) && v == 4 * KiB);
    EXPECT_TRUE(parse_Size("3MiB", v) && v == 3 * MiB);
    EXPECT_TRUE(parse_Size("1T", v) && v == TiB);
    for (const char* bad : {"", "G", "-1", "1X", "99999999999999999999", "99999999999G", "1GG"})
        EXPECT_FALSE(parse_Size(bad, v)) << bad;
}

std::string capitals(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(c));
    return text;
}

// In lines of less than 100 columns.
std::string wrapped(const std::string& text) {
    std::istringstream words(text);
    std::string result;
    std::size_t column = 0;
    for (std::string word; words >> word; column += word.size() + 1) {
        if (column + word.size() > 98) column = 0;
        if (!result.empty()) result += column == 0 ? '\n' : ' ';
        result += word;
    }
    return result;
}

enum class Group { users, live, experiment };

std::string row(const char* name, const char* accepted, const char* default_text, Group group) {
    const std::string variable = "NUMALLOC_" + capitals(name);
    std::string anchor = variable;
    for (char& c : anchor) c = static_cast<char>(std::tolower(c));
    return "| [`" + variable + "`](#" + anchor + ") | " + accepted + " | `" + default_text + "` | " +
           (group == Group::live ? "yes" : "") + " |\n";
}

std::string section(const char* name, const char* accepted, const char* default_text, const std::string& what,
                    Group group) {
    return "\n### NUMALLOC_" + capitals(name) + "\n\n" +
           wrapped(std::string(1, static_cast<char>(std::toupper(what[0]))) + what.substr(1) + ".") +
           "\n\n- Accepted: " + accepted + "\n- Default: `" + default_text + "`\n" +
           (group == Group::live ? "- May change while the program runs\n" : "");
}

const char* const marker =
    "<!-- Below: made from include/numalloc/options.def by `NUMALLOC_UPDATE=1 options_test` -->\n";

std::string reference() {
    const char* const head =
        "\n| option | accepted | default | may change while the program runs |\n|---|---|---|---|\n";
    std::string users_table, users, experiments_table, experiments;
    const auto add = [&](const char* name, const char* accepted, const char* default_text, const char* what,
                         Group group) {
        const bool experiment = group == Group::experiment;
        (experiment ? experiments_table : users_table) += row(name, accepted, default_text, group);
        (experiment ? experiments : users) += section(name, accepted, default_text, what, group);
    };
#define NUMALLOC_OPTION(name, Kind, default_text, what)                   \
    add(#name, kind::Kind##_accepted, #default_text, what, Group::users);
#define NUMALLOC_LIVE_OPTION(name, Kind, default_text, what)             \
    add(#name, kind::Kind##_accepted, #default_text, what, Group::live);
#define NUMALLOC_EXPERIMENT_OPTION(name, Kind, default_text, what)             \
    add(#name, kind::Kind##_accepted, #default_text, what, Group::experiment);
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
    return marker + ("\n## Values and defaults\n" + (head + users_table)) + users + "\n## Options for experiments\n\n" +
           wrapped(
               "Each turns off or changes one mechanism of the library, to show its gain. Only a library configured "
               "with "
               "`-DNUMALLOC_EXPERIMENTS=ON` reads them (`cmake --preset experiments`); any other ignores them and "
               "reports that on "
               "stderr. `numalloc bench --ablations` runs them. Programs do not need them.") +
           "\n" + head + experiments_table + experiments;
}

// The text above the marker is written by hand.
TEST(Options, TheReferenceIsCurrent) {
    const std::string path = NUMALLOC_SOURCE_DIR "/docs/options.md";
    std::ostringstream read;
    read << std::ifstream(path).rdbuf();
    const std::string there = read.str();
    const std::size_t begin = there.find(marker);
    ASSERT_NE(begin, std::string::npos) << path << " has no line " << marker;
    if (std::getenv("NUMALLOC_UPDATE") != nullptr) std::ofstream(path) << there.substr(0, begin) << reference();
    else EXPECT_EQ(there.substr(begin), reference()) << "run: NUMALLOC_UPDATE=1 options_test";
}

// parse_KIND() reads the output of print_KIND() back as the same value.
TEST(Options, WhatIsPrintedIsUnderstood) {
    const auto again = [](auto print, auto parse, auto value, const char* text) {
        Text<200> printed;
        print(printed, value);
        EXPECT_STREQ(printed.c_str(), text);
        auto read = value;
        read = {};
        EXPECT_TRUE(parse(printed.c_str(), read));
        EXPECT_TRUE(read == value) << text;
    };
    again([](auto& t, auto v) { print_Binding(t, v); }, [](auto t, auto& v) { return parse_Binding(t, v); },
          Binding::saturate, "saturate");
    again([](auto& t, auto v) { print_HugePages(t, v); }, [](auto t, auto& v) { return parse_HugePages(t, v); },
          HugePages::automatic, "auto");
    again([](auto& t, auto v) { print_Milliseconds(t, v); }, [](auto t, auto& v) { return parse_Milliseconds(t, v); },
          -1, "-1");
    again([](auto& t, auto v) { print_Size(t, v); }, [](auto t, auto& v) { return parse_Size(t, v); }, 24 * KiB,
          "24576");
    again([](auto& t, auto v) { print_Signal(t, v); }, [](auto t, auto& v) { return parse_Signal(t, v); }, 10, "10");
    again([](auto& t, auto v) { print_Signal(t, v); }, [](auto t, auto& v) { return parse_Signal(t, v); }, 0, "none");
    MemoryPlacement bind;
    ASSERT_TRUE(parse_Memory("bind:0-3,8,10-11", bind));
    again([](auto& t, auto v) { print_Memory(t, v); }, [](auto t, auto& v) { return parse_Memory(t, v); }, bind,
          "bind:0-3,8,10-11");
}

TEST(Options, Signals) {
    int v = 5;
    EXPECT_TRUE(parse_Signal("SIGUSR2", v) && v == SIGUSR2);
    for (const char* bad : {"", "9", "11", "19", "32", "65", "KILL", "USR3", "10x", "-1"})
        EXPECT_FALSE(parse_Signal(bad, v)) << bad;
}

// PostgreSQL, nginx, redis and others write their title over the environment.
TEST(Options, PathsOutliveTheEnvironment) {
    char profile[] = "NUMALLOC_PROFILE_FILE=there.%p";
    char statistics[] = "NUMALLOC_STATISTICS=exit";
    char* environment[] = {profile, statistics, nullptr};
    char** const kept = std::exchange(environ, environment);
    init_options();
    std::memset(profile, 0, sizeof profile);
    std::memset(statistics, 'x', sizeof statistics - 1);
    EXPECT_STREQ(options().profile_file, "there.%p");
    EXPECT_STREQ(options().statistics, "exit");

    char usual[] = "NUMALLOC_PROFILE_FILE=numalloc.%p.pb";
    environment[0] = usual;
    init_options();
    std::memset(usual, 0, sizeof usual);
    EXPECT_STREQ(options().profile_file, "numalloc.%p.pb");

    const std::string too_long = "NUMALLOC_STATISTICS=" + std::string(4096, 'y');
    environment[1] = const_cast<char*>(too_long.c_str());
    static std::string said;
    os::set_output([](const char* line, void*) { said += line; }, nullptr);
    init_options();
    os::set_output(nullptr, nullptr);
    EXPECT_EQ(options().statistics, nullptr);
    EXPECT_NE(said.find("NUMALLOC_STATISTICS is longer than 4095 bytes"), std::string::npos) << said;
    environ = kept;
    init_options();
}

TEST(Options, OnlySomeMayChangeWhileTheProgramRuns) {
    EXPECT_EQ(set_option("purge_delay", "2s"), OptionSet::done);
    EXPECT_EQ(options().purge_delay, 2000);
    EXPECT_EQ(set_option("NUMALLOC_PURGE_DELAY", "5"), OptionSet::done);
    EXPECT_EQ(options().purge_delay, 5);
    EXPECT_EQ(set_option("purge_delay", "soon"), OptionSet::not_understood);
    EXPECT_EQ(options().purge_delay, 5);
    EXPECT_EQ(set_option("thp", "off"), OptionSet::fixed);
    EXPECT_EQ(set_option("purge", "1"), OptionSet::unknown);
    char path[] = "/tmp/there";
    EXPECT_EQ(set_option("statistics", path), OptionSet::done);
    path[1] = 'x';
    EXPECT_STREQ(options().statistics, "/tmp/there");
}

}  // namespace
}  // namespace numalloc

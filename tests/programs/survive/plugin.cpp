// A C++ plugin with everything that a loader has to bring up and take down: static objects,
// thread_local objects with destructors, exceptions, memory handed to its host.
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::map<std::string, std::vector<int>> table = [] {
    std::map<std::string, std::vector<int>> made;
    for (int i = 0; i < 100; ++i) made["entry " + std::to_string(i)].assign(50, i);
    return made;
}();

struct Scratch {
    std::vector<char> bytes = std::vector<char>(3000, 'x');
    ~Scratch() { bytes.assign(5000, 'y'); }
};
thread_local Scratch scratch;

}  // namespace

extern "C" char* plugin_text(int n) {
    scratch.bytes[0] = 'z';
    try {
        if (n % 3 == 0) throw std::runtime_error("thrown " + std::to_string(n));
        return strdup(("entry of " + std::to_string(table.at("entry " + std::to_string(n % 100))[0])).c_str());
    } catch (const std::exception& error) {
        return strdup(error.what());
    }
}

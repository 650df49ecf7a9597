// A made-up /sys and /proc, file by file, for tests of what reads them.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "os/topology.h"

namespace numalloc::testing {

class MadeUpMachine {
public:
    MadeUpMachine& file(const std::string& path, const std::string& text) {
        files_[path] = text + "\n";
        return *this;
    }
    MadeUpMachine& nodes_file(const std::string& name, const std::string& text) {
        return file("/sys/devices/system/node/" + name, text);
    }
    // A node with its CPU list ("" for none) and the distances to all online nodes.
    MadeUpMachine& node(unsigned n, const std::string& cpus, const std::string& distances) {
        nodes_file("node" + std::to_string(n) + "/cpulist", cpus);
        return nodes_file("node" + std::to_string(n) + "/distance", distances);
    }
    // Sets online and has_memory, and `count` nodes of `cpus_each` CPUs at distances 10 and 20.
    static MadeUpMachine regular(unsigned count, unsigned cpus_each) {
        MadeUpMachine machine;
        const std::string all = count == 1 ? "0" : "0-" + std::to_string(count - 1);
        machine.nodes_file("online", all).nodes_file("has_memory", all);
        for (unsigned n = 0; n < count; ++n) {
            std::string distances;
            for (unsigned to = 0; to < count; ++to) distances += to == n ? "10 " : "20 ";
            machine.node(n, std::to_string(n * cpus_each) + "-" + std::to_string((n + 1) * cpus_each - 1), distances);
        }
        return machine;
    }

    os::SysReader reader() { return {read, this}; }
    os::TaskReader task_reader() { return {read_task, this}; }
    std::unique_ptr<os::Topology> topology(os::TaskPolicy task = os::TaskPolicy::none, const os::NodeMask& nodes = {}) {
        auto result = std::make_unique<os::Topology>();
        policy_ = task;
        policy_nodes_ = nodes;
        result->read(reader(), task_reader());
        return result;
    }
    const std::vector<std::string>& paths_read() const { return paths_read_; }
    unsigned times_asked_for_policy() const { return asked_; }

private:
    static long read(void* self, const char* path, char* buffer, Bytes capacity) {
        auto* machine = static_cast<MadeUpMachine*>(self);
        machine->paths_read_.push_back(path);
        const auto found = machine->files_.find(path);
        if (found == machine->files_.end()) return -ENOENT;
        const Bytes n = std::min(found->second.size(), capacity - 1);
        std::memcpy(buffer, found->second.data(), n);
        buffer[n] = '\0';
        return static_cast<long>(n);
    }

    static os::TaskPolicy read_task(void* self, os::NodeMask& nodes) {
        auto* machine = static_cast<MadeUpMachine*>(self);
        ++machine->asked_;
        nodes = machine->policy_nodes_;
        return machine->policy_;
    }

    os::TaskPolicy policy_ = os::TaskPolicy::none;
    os::NodeMask policy_nodes_;
    unsigned asked_ = 0;
    std::map<std::string, std::string> files_;
    std::vector<std::string> paths_read_;
};

}  // namespace numalloc::testing

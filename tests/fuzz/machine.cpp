// Any machine: the bytes are the files of /sys and /proc that the library asks for, NUL between them, in the order of
// its questions. A file that begins with '!' is not there. What is read must be a machine that makes sense.
#include <cerrno>
#include <cstring>

#include "os/node_kinds.h"
#include "os/topology.h"

namespace {

struct Files {
    const unsigned char* next;
    const unsigned char* end;

    static long read(void* context, const char*, char* buffer, numalloc::Bytes capacity) {
        auto& files = *static_cast<Files*>(context);
        if (files.next == files.end || *files.next == '!') {
            while (files.next != files.end && *files.next++ != '\0') {}
            return -ENOENT;
        }
        numalloc::Bytes n = 0;
        for (; files.next != files.end && *files.next != '\0'; ++files.next)
            if (n + 1 < capacity) buffer[n++] = static_cast<char>(*files.next);
        if (files.next != files.end) ++files.next;
        buffer[n] = '\0';
        return static_cast<long>(n);
    }
};

void must(bool condition) {
    if (!condition) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace numalloc;
    Files files{data, data + size};
    const os::SysReader reader{Files::read, &files};
    const os::TaskReader task{[](void*, os::NodeMask&) { return os::TaskPolicy::none; }, nullptr};
    os::Topology machine;
    machine.read(reader, task);

    const unsigned nodes = machine.nodes();
    must(nodes >= 1 && nodes <= os::max_os_nodes);
    for (unsigned from = 0; from < nodes; ++from) {
        must(machine.os_node(NodeId{from}) < os::max_os_nodes);
        must(machine.nearest(NodeId{from}, 0) == NodeId{from});
        unsigned before = 0;
        for (unsigned k = 1; k < nodes && nodes <= 64; ++k) {
            const NodeId to = machine.nearest(NodeId{from}, k);
            must(to.value < nodes && to.value != from);
            must(machine.distance(NodeId{from}, to) >= before);
            before = machine.distance(NodeId{from}, to);
        }
    }
    for (unsigned cpu = 0; cpu < os::max_cpus; cpu += 7) {
        const NodeId home = machine.node_of_cpu(cpu);
        must(home == no_node || home.value < nodes);
    }
    os::NodeMask all, some;
    os::nodes_with_cpus(reader, all);
    os::nodes_of_most_bandwidth(reader, all, some);
    os::nodes_of_slower_tiers(reader, some);
    return 0;
}

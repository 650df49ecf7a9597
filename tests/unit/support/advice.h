// What the kernel was advised for a mapping of this process.
#pragma once

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "base/bits.h"

namespace numalloc::testing {

// "hg": huge pages; "nh": none; "": no advice, or a kernel without huge pages.
inline std::string advice_at(const void* p) {
    const Address address = address_of(p);
    std::ifstream maps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(maps, line);) {
        unsigned long from = 0, to = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) inside = from <= address && address < to;
        if (!inside || line.rfind("VmFlags:", 0) != 0) continue;
        std::istringstream flags(line);
        for (std::string flag; flags >> flag;)
            if (flag == "hg" || flag == "nh") return flag;
    }
    return "";
}

}  // namespace numalloc::testing

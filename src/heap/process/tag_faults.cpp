// A wrong tag, in one line: which object is there, and what the access is to it.
#include "heap/process/locate.h"

#if defined(NUMALLOC_HAS_TAGS)

#include "os/fault.h"
#include "os/report.h"
#include "os/tags.h"

namespace numalloc::tags {

constinit Address bits = 0;

namespace {

bool explain(const os::Fault& fault) {
    if (!fault.wrong_tag) return false;
    const auto* const p = reinterpret_cast<const void*>(fault.address & ~bits);
    const char* const access = fault.access == os::Access::write ? "write" : fault.access == os::Access::read ? "read" : "access";
    const Location at = locate_untagged(p);
    os::Line line;
    if (at.found == Found::small) {
        const Region& region = at.owner->pages.region();
        const Address bag = address_of(region.address(region.head_of(at.bag)));
        const Bytes size = shape_of(at.class_id).size;
        const Address object = bag + object_at(at.class_id, address_of(p) - bag) * size;
        const Bytes offset = address_of(p) - object;
        const bool freed = was_freed(reinterpret_cast<const Object*>(object));
        const bool beyond = offset >= size - tail_bytes;
        line << (beyond ? "overflow" : freed ? "use after free" : "wrong pointer") << ": " << access << " at " << p << ", byte "
             << std::uint64_t{beyond ? offset - (size - tail_bytes) + 1 : offset} << (beyond ? " behind the " : " of the ")
             << std::uint64_t{size - tail_bytes} << "-byte object at " << reinterpret_cast<const void*>(object);
        if (!beyond && !freed) line << ", which is another one's";
        if (beyond) line << ", in front of the next one";
    } else {
        line << "wrong pointer: " << access << " at " << p << ", where no small object is";
    }
    os::say(line);
    return true;
}

}  // namespace

void start() {
    if (!os::begin_tags()) return;
    bits = Address{15} << 56;
    os::on_fault(explain);
}

}  // namespace numalloc::tags

#endif

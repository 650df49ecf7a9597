#include "heap/profile/code.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace numalloc::profile {
namespace {

// Of the mapping that begins at `p`; "not listed" without one.
std::string build_id_at(CodeMappings& code, const void* p) {
    CodeMapping mapping;
    code.again();
    while (code.next(mapping)) {
        if (mapping.begin != address_of(p)) continue;
        code.read_build_id(mapping);
        return {mapping.build_id, mapping.build_id_length};
    }
    return "not listed";
}

TEST(Code, AnImageThatWasUnmappedSinceHasNoBuildId) {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat about{};
    ASSERT_EQ(fstat(file, &about), 0);
    const auto bytes = static_cast<std::size_t>(about.st_size);
    void* const image = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    ASSERT_NE(image, MAP_FAILED);
    close(file);
    CodeMappings code;
    EXPECT_GE(build_id_at(code, image).size(), 16U);
    munmap(image, bytes);
    EXPECT_EQ(build_id_at(code, image), "");
}

}  // namespace
}  // namespace numalloc::profile

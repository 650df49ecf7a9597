#include <gtest/gtest.h>

#include "check.h"

int main(int argc, char** argv) {
    testing_support::require_library();
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}

// A program without a C++ run-time library, whose plugin has one: new fails there as it would alone.
//
//   opens_runtime PLUGIN local|global
#include "c_check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    CHECK(argc == 3);
    void *plugin = dlopen(argv[1], RTLD_NOW | (strcmp(argv[2], "local") == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
    CHECK(plugin != NULL);
    int (*failing_forms)(int *) = (int (*)(int *))dlsym(plugin, "failing_forms");
    CHECK(failing_forms != NULL);
    int calls = 0;
    CHECK(failing_forms(&calls) == 4);
    CHECK(calls == 4 * 3);
    puts("new threw");
}

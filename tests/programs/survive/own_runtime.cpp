// A plugin with a C++ run-time library of its own, linked statically.
#include <new>

namespace {

volatile std::size_t too_much = std::size_t{1} << 60;
int handled = 0;

void handle() {
    if (++handled % 3 == 0) std::set_new_handler(nullptr);
}

template <class New>
int fails(New make) {
    std::set_new_handler(handle);
    try {
        void* volatile p = make();
        (void)p;
    } catch (const std::bad_alloc&) {
        return 1;
    }
    return 0;
}

}  // namespace

// The number of forms that throw; `calls` receives that of the new_handler.
extern "C" __attribute__((visibility("default"))) int failing_forms(int* calls) {
    const int forms = fails([] { return ::operator new(too_much); }) +
                      fails([] { return ::operator new[](too_much); }) +
                      fails([] { return ::operator new(too_much, std::align_val_t{256}); }) +
                      fails([] { return ::operator new[](too_much, std::align_val_t{256}); });
    *calls = handled;
    return forms;
}

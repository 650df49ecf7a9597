// pthread_atfork(), without the copy of it that every object links in.
#pragma once

extern "C" int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
extern "C" void* __dso_handle;

namespace numalloc::api {

inline void register_fork_handlers(void (*prepare)(), void (*parent)(), void (*child)()) {
    __register_atfork(prepare, parent, child, &__dso_handle);
}

}  // namespace numalloc::api

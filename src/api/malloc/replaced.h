// Which of our names the process has given to functions of its own.
#pragma once

namespace numalloc::api {

// libstdc++'s operators go through each other and through malloc and free by name (new[] calls new, which calls
// malloc), so that a program that replaces one has replaced what leans on it. Ours do the same, where
// this says that there is something to find: one of the names that they call is not bound to us, or we have stepped
// aside. The answer is the same from the first call to the last.
bool operators_replaced();

}  // namespace numalloc::api

// A thread moves to another node.
#pragma once

#include "base/ids.h"

namespace numalloc {

// From now on the calling thread allocates on `node`; what it holds of its old node goes back
// there. Does nothing for a thread without a heap: it gets one on its node when it needs it.
void rehome_current_thread(NodeId node);

}  // namespace numalloc

// Counts the allocations of a test program, for tests that there are none.
#pragma once

namespace tern {

// Calls of operator new in the whole program so far.
long allocations_so_far();

}  // namespace tern

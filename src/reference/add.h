// add: y = a + b.
#pragma once

#include <cstdint>

namespace tern::reference {

// Each sum rounded once. y may be a or b.
void add(const float* a, const float* b, std::int64_t count, float* y);

}  // namespace tern::reference

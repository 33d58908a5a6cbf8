// The scalar formulas of add, written for reading.
#include "reference/add.h"

namespace tern::reference {

void add(const float* a, const float* b, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

}  // namespace tern::reference

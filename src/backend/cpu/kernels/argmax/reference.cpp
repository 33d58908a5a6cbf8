// argmax in portable code: the reference.
#include "backend/cpu/kernels/argmax/kernels.h"
#include "reference/argmax.h"

namespace tern::cpu {

ArgmaxPart argmax_reference(const float* row, std::int64_t begin, std::int64_t end) {
  const reference::Argmax found = reference::argmax(row, begin, end);
  ArgmaxPart part;
  if (found.index >= 0) part.value = row[found.index];
  part.index = found.index;
  part.has_nan = found.has_nan;
  part.has_finite = found.has_finite;
  return part;
}

}  // namespace tern::cpu

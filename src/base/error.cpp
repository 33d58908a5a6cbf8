#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace tern {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace tern

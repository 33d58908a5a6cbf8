// The only file that is compiled again when the commit changes.
#include "cli/build_info.h"

#include <tern_build_commit.h>

#include "tern/version.h"

namespace tern::cli {

BuildInfo build_info() {
  return {
    TERN_VERSION_STRING, TERN_BUILD_COMMIT, TERN_BUILD_NUMBER,
#if defined(__clang__)
        "clang " __clang_version__,
#else
        "g++ " __VERSION__,
#endif
        TERN_BUILD_TYPE
  };
}

}  // namespace tern::cli

// Progress of long work, reported by a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tern {

struct Progress {
  std::string_view what;    // "loading", "repacking weights": only valid during the call
  std::string_view unit;    // "bytes", "tokens"; may be empty
  std::uint64_t done = 0;   // in the unit of total
  std::uint64_t total = 0;  // 0: not known
  bool finished = false;    // the last call of this piece of work
};

// Called at most about ten times a second, from the thread that does the work. May be empty. What
// it throws ends the work and reaches the caller.
using ProgressFn = std::function<void(const Progress&)>;

}  // namespace tern

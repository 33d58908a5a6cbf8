// Progress of long work, reported by a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tern {

struct Progress {
  std::string_view what;    // "repacking", "prompt"
  std::string_view unit;    // "bytes", "tokens"
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: unknown
  bool finished = false;    // the last report of this piece of work
};

// Called at most about ten times a second, from the thread that does the work. May be empty. A callback that throws
// cancels the work and its exception is passed on.
using ProgressFn = std::function<void(const Progress&)>;

}  // namespace tern

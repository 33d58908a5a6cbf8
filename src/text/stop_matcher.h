// Stop strings in a stream of text: nothing of one is ever shown, wherever the chunks are cut.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tern::text {

// The match that starts first counts, of those that start at one place the longest. So the outcome
// depends on the text alone and not on its chunks; where a stop string is complete but one that
// starts earlier, or a longer one, may still become so, the matcher waits for more text. It keeps
// fewer bytes than the longest stop string has. Not thread-safe.
class StopMatcher {
 public:
  struct Step {
    std::string text;                 // what may be shown
    std::optional<std::size_t> stop;  // the stop string that ended the text, by its number
  };

  // An empty stop string is an error (kInvalidArgument). Without any, text passes through.
  [[nodiscard]] static Result<StopMatcher> create(std::vector<std::string> stops);

  // After a stop every further call gives an empty text and the same stop.
  [[nodiscard]] Step push(std::string_view chunk);
  // The end of the text: what was held back, up to a stop string in it.
  [[nodiscard]] Step flush();

 private:
  explicit StopMatcher(std::vector<std::string> stops);
  Step scan(bool is_end);

  std::vector<std::string> stops_;
  std::array<bool, 256> starts_{};  // a stop string begins with this byte
  std::string held_;
  std::optional<std::size_t> found_;
};

}  // namespace tern::text

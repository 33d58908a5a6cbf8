// Matching by comparison at every place where a stop string may begin: they are few and short.
#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace tern::text {

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) {
      return fail(ErrorCode::kInvalidArgument, "stop string {} is empty", i);
    }
  }
  return StopMatcher(std::move(stops));
}

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) starts_[static_cast<unsigned char>(stop[0])] = true;
}

StopMatcher::Step StopMatcher::push(std::string_view chunk) {
  if (found_) return {"", found_};
  if (stops_.empty()) return {std::string(chunk), std::nullopt};
  held_ += chunk;
  return scan(false);
}

StopMatcher::Step StopMatcher::flush() {
  if (found_) return {"", found_};
  return scan(true);
}

StopMatcher::Step StopMatcher::scan(bool is_end) {
  std::size_t at = 0;
  for (; at < held_.size(); ++at) {
    if (!starts_[static_cast<unsigned char>(held_[at])]) continue;
    const std::string_view rest = std::string_view(held_).substr(at);
    bool may_follow = false;  // a stop string of which the rest is the beginning
    std::optional<std::size_t> longest;
    for (std::size_t i = 0; i < stops_.size(); ++i) {
      const std::string& stop = stops_[i];
      const std::size_t common = std::min(stop.size(), rest.size());
      if (rest.substr(0, common) != std::string_view(stop).substr(0, common)) continue;
      if (stop.size() > rest.size()) {
        may_follow = true;
      } else if (!longest || stop.size() > stops_[*longest].size()) {
        longest = i;
      }
    }
    if (may_follow && !is_end) break;
    if (longest) {
      found_ = longest;
      break;
    }
  }
  Step step{held_.substr(0, at), found_};
  held_.erase(0, found_ ? held_.size() : at);
  return step;
}

}  // namespace tern::text

// The matcher: a walk through sorted contents that narrows the range with every byte of the text.
#include "text/added_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "text/stop_request.h"

namespace tern::text {

AddedTokenMatcher::AddedTokenMatcher(const std::vector<AddedToken>& tokens,
                                     bool (*wanted)(const AddedToken&)) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!wanted(tokens[i])) continue;
    TERN_ASSERT(!tokens[i].content.empty() && tokens[i].content.size() <= kMaxContentBytes);
    contents_.push_back({tokens[i].content, static_cast<std::uint32_t>(i)});
  }
  // std::string compares bytes as unsigned, as the walk does.
  std::stable_sort(contents_.begin(), contents_.end(),
                   [](const Content& a, const Content& b) { return a.text < b.text; });
  contents_.erase(std::unique(contents_.begin(), contents_.end(),
                              [](const Content& a, const Content& b) { return a.text == b.text; }),
                  contents_.end());
  first_of_.assign(257, 0);
  for (const Content& c : contents_) ++first_of_[static_cast<unsigned char>(c.text[0]) + 1U];
  for (std::size_t b = 1; b < first_of_.size(); ++b) first_of_[b] += first_of_[b - 1];
}

const AddedTokenMatcher::Content* AddedTokenMatcher::longest_at(std::string_view text,
                                                                std::size_t at) const {
  const auto first = static_cast<unsigned char>(text[at]);
  auto low = contents_.begin() + first_of_[first];
  auto high = contents_.begin() + first_of_[first + 1U];
  const Content* found = nullptr;
  // [low, high) begin with the `depth` bytes of text at `at`.
  for (std::size_t depth = 1; low != high; ++depth) {
    if (low->text.size() == depth) found = &*low++;  // the shortest of a prefix sorts first
    if (at + depth >= text.size()) break;
    const auto byte = static_cast<unsigned char>(text[at + depth]);
    const auto byte_of = [depth](const Content& c) {
      return static_cast<unsigned char>(c.text[depth]);
    };
    low = std::lower_bound(low, high, byte,
                           [&](const Content& c, unsigned char b) { return byte_of(c) < b; });
    high = std::upper_bound(low, high, byte,
                            [&](unsigned char b, const Content& c) { return b < byte_of(c); });
  }
  return found;
}

AddedTokenMatch AddedTokenMatcher::find(std::string_view text, std::size_t from,
                                        const CancelToken& cancel) const {
  if (empty()) return {text.size(), text.size(), 0};
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (first_of_[byte] == first_of_[byte + 1U]) continue;
    stop_if_requested(cancel);
    if (const Content* content = longest_at(text, at)) {
      return {at, at + content->text.size(), content->index};
    }
  }
  return {text.size(), text.size(), 0};
}

}  // namespace tern::text

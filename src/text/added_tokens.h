// Finds the texts of added tokens in a text: the leftmost first, of those at one place the longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tern/cancel.h"

namespace tern::text {

// A token that is cut out of the text before anything else happens to it.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = true;        // a control token; else a user-defined one
  bool strips_left = false;   // takes the white space before it along
  bool strips_right = false;  // takes the white space after it along
  bool normalized = false;    // is looked for in the normalised text
};

struct AddedTokenMatch {
  std::size_t begin = 0, end = 0;  // of its text; equal: nothing was found
  std::uint32_t index = 0;         // into the tokens that the matcher was made from
};

// Immutable. Finding takes at most (length of the longest content) steps per byte.
class AddedTokenMatcher {
 public:
  // The most bytes of one content, which bounds the work on a hostile file and text.
  static constexpr std::size_t kMaxContentBytes = 1'024;

  AddedTokenMatcher() = default;
  // Of the tokens that `wanted` accepts. Contents are neither empty nor too long (asserted); of two
  // equal ones the first counts.
  AddedTokenMatcher(const std::vector<AddedToken>& tokens, bool (*wanted)(const AddedToken&));

  [[nodiscard]] bool empty() const { return contents_.empty(); }
  // The first match at or after `from`.
  [[nodiscard]] AddedTokenMatch find(std::string_view text, std::size_t from,
                                     const CancelToken& cancel = {}) const;

 private:
  struct Content {
    std::string text;
    std::uint32_t index = 0;
  };
  // The longest content that text begins with at `at`, or nullptr.
  [[nodiscard]] const Content* longest_at(std::string_view text, std::size_t at) const;

  std::vector<Content> contents_;        // sorted by bytes: those with one prefix stand together
  std::vector<std::uint32_t> first_of_;  // [257]: contents that begin with a byte
};

}  // namespace tern::text

// JSON from strangers: checked, bounded in depth, and cut into its members without changing a byte
// of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tern::cli {

// The members of an object with the text of each value as it stands; empty optional when the text
// is no object. Errors: kInvalidArgument with the byte where the JSON breaks (or goes deeper than
// 64), subject in front.
using JsonMembers = std::vector<std::pair<std::string, std::string_view>>;
[[nodiscard]] std::optional<JsonMembers> json_members(std::string_view subject,
                                                      std::string_view text);
// The last member of that name, as JSON reads duplicates; nothing when there is none.
[[nodiscard]] std::optional<std::string_view> member(const JsonMembers& members,
                                                     std::string_view name);
// A JSON string of any bytes; invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace tern::cli

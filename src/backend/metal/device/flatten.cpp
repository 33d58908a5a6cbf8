// One text from a kernel's source and the headers that it includes.
#include <set>

#include "backend/metal/device/embedded.h"

namespace tern::metal {
namespace {

class Flattener {
 public:
  explicit Flattener(std::span<const EmbeddedSource> table) : table_(table) {}

  Result<void> add(std::string_view name, std::string_view from) {
    if (!done_.insert(name).second) return {};
    for (const EmbeddedSource& source : table_)
      if (source.name == name) return add_lines(source);
    return fail(ErrorCode::kNotFound, "[metal] source {} includes {}, which is not in this program",
                from, name);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  Result<void> add_lines(const EmbeddedSource& source) {
    std::string_view rest = source.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end);
      constexpr std::string_view kInclude = "#include \"";
      if (line.starts_with(kInclude)) {
        const std::string_view name = line.substr(kInclude.size());
        TERN_TRY(add(name.substr(0, name.find('"')), source.name));
      } else if (!line.starts_with("#pragma once")) {
        text_ += line;
        if (!line.ends_with('\n')) text_ += '\n';
      }
    }
    return {};
  }

  std::span<const EmbeddedSource> table_;
  std::set<std::string_view> done_;
  std::string text_;
};

}  // namespace

Result<std::string> flatten_source(std::string_view main, std::span<const EmbeddedSource> table) {
  Flattener flattener(table);
  TERN_TRY(flattener.add(main, "the table of kernels"));
  return flattener.take();
}

}  // namespace tern::metal

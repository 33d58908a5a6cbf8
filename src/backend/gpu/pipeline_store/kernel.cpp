#include "backend/gpu/pipeline_store/kernel.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include "base/hash.h"

namespace tern::gpu {
namespace {

std::string joined(std::vector<std::string> parts, char separator) {
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string text_of(int value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "1" : "0"; }
std::string text_of(MathMode value) { return value == MathMode::kFast ? "fast" : "precise"; }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const std::vector<std::string>& values) { return joined(values, ','); }

// The name in an `#include "name"` line, or nothing.
std::string_view included_name(std::string_view line) {
  const auto skip_blanks = [&line] {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  };
  skip_blanks();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_blanks();
  constexpr std::string_view kWord = "include";
  if (!line.starts_with(kWord)) return {};
  line.remove_prefix(kWord.size());
  skip_blanks();
  if (!line.starts_with('"')) return {};
  line.remove_prefix(1);
  return line.substr(0, line.find('"'));
}

}  // namespace

std::string source_hash(const std::vector<SourceFile>& sources) {
  Sha256 hash;
  for (const SourceFile& source : sources) {
    // Lengths first, so that no other split of the same bytes hashes the same.
    hash.update(fmt::format("{} {}\n", source.name.size(), source.text.size()));
    hash.update(source.name);
    hash.update(source.text);
  }
  return hash.finish_hex();
}

std::string canonical_text(const CompileOptions& options) {
  std::vector<std::string> parts;
  visit_option_fields(options, [&parts](std::string_view name, const auto& value) {
    parts.push_back(fmt::format("{}={}", name, text_of(value)));
  });
  return joined(parts, ';');
}

std::string canonical_text(const std::vector<Constant>& constants) {
  std::vector<std::string> parts;
  for (const Constant& constant : constants) {
    parts.push_back(fmt::format("{}={}:{}", constant.name, constant.type, constant.value));
  }
  return joined(parts, ';');
}

std::string display_name(const KernelDescription& kernel) {
  std::string name = kernel.code.stem + "/" + kernel.code.variant;
  std::vector<Constant> constants = kernel.code.constants;
  constants.insert(constants.end(), kernel.load_constants.begin(), kernel.load_constants.end());
  if (!constants.empty()) name += " [" + canonical_text(constants) + "]";
  return name;
}

Result<std::vector<SourceFile>> gather_sources(std::string_view main,
                                               const std::vector<SourceFile>& table) {
  std::map<std::string_view, const SourceFile*> by_name;
  for (const SourceFile& file : table) by_name.emplace(file.name, &file);
  std::vector<const SourceFile*> found;
  // Returns false for a name that the table lacks.
  const auto take = [&](std::string_view name) {
    const auto at = by_name.find(name);
    if (at == by_name.end()) return false;
    if (std::find(found.begin(), found.end(), at->second) == found.end()) {
      found.push_back(at->second);
    }
    return true;
  };
  if (!take(main)) {
    return fail(ErrorCode::kNotFound, "kernel source '{}' is not in the executable", main);
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::string_view rest = found[i]->text;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      const std::string_view name = included_name(rest.substr(0, end));
      if (!name.empty() && !take(name)) {
        return fail(ErrorCode::kNotFound,
                    "kernel source '{}' includes \"{}\", which is not in the executable",
                    found[i]->name, name);
      }
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
  }
  std::vector<SourceFile> sources;
  sources.reserve(found.size());
  // Headers by name: the order in which they were met is no property of the code.
  std::sort(found.begin() + 1, found.end(),
            [](const SourceFile* a, const SourceFile* b) { return a->name < b->name; });
  for (const SourceFile* file : found) sources.push_back(*file);
  return sources;
}

}  // namespace tern::gpu

// A state machine over parser events: the header has three levels, and everything else is refused
// where it appears.
#include "io/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/limits.h"
#include "base/utf8.h"

namespace tern::io {
namespace {

constexpr std::size_t kTextStart = 8;  // of the header in the file

// Events of nlohmann's SAX parser. Every function returns false to stop, with the reason in
// `problem`.
class HeaderHandler {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the names that the parser asks for
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;
  // NOLINTEND(readability-identifier-naming)

  SafetensorsHeader header;
  std::string problem;

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool number_float(number_float_t, const string_t& text) { return unexpected("number " + text); }
  bool binary(binary_t&) { return unexpected("binary data"); }
  bool number_integer(number_integer_t value) {
    return unexpected(fmt::format("number {}", value));
  }
  bool number_unsigned(number_unsigned_t value) {
    if (place_ != Place::kNumbers) return unexpected(fmt::format("number {}", value));
    std::vector<std::uint64_t>& numbers = *numbers_of(entry());
    const bool is_shape = field_ == "shape";
    const std::size_t most =
        is_shape ? static_cast<std::size_t>(limits::kSafetensorsDimensions) : 2;
    if (numbers.size() >= most) {
      return stop(
          is_shape
              ? fmt::format("tensor '{}' has more than {} dimensions", shown(entry().name), most)
              : fmt::format("tensor '{}' has more than two data_offsets", shown(entry().name)));
    }
    numbers.push_back(value);
    return true;
  }
  bool string(string_t& value) {
    if (place_ == Place::kMetadata) {
      header.metadata.emplace(field_, value);
      return true;
    }
    if (place_ != Place::kTensor || field_ != "dtype") {
      return unexpected("string '" + shown(value) + "'");
    }
    entry().dtype = value;
    return true;
  }
  bool start_object(std::size_t) {
    if (place_ == Place::kStart) {
      place_ = Place::kRoot;
      return true;
    }
    if (place_ != Place::kRoot) return unexpected("an object");
    place_ = field_ == "__metadata__" ? Place::kMetadata : Place::kTensor;
    fields_.clear();
    if (place_ == Place::kMetadata) return true;
    if (header.entries.size() >= limits::kSafetensorsTensors) {
      return stop(fmt::format("the header has more than {} tensors", limits::kSafetensorsTensors));
    }
    header.entries.emplace_back().name = field_;
    return true;
  }
  bool key(string_t& name) {
    auto& seen = place_ == Place::kRoot ? names_ : fields_;
    if (!seen.insert(name).second) {
      return stop(place_ == Place::kTensor
                      ? fmt::format("field '{}' of tensor '{}' is given twice", shown(name),
                                    shown(entry().name))
                      : fmt::format("{} '{}' is given twice",
                                    place_ == Place::kRoot ? "tensor" : "metadata key",
                                    shown(name)));
    }
    if (place_ == Place::kTensor && name != "dtype" && name != "shape" && name != "data_offsets") {
      return stop(fmt::format("tensor '{}' has a field '{}', expected dtype, shape, data_offsets",
                              shown(entry().name), shown(name)));
    }
    field_ = name;
    return true;
  }
  bool end_object() {
    place_ = place_ == Place::kRoot ? Place::kEnd : Place::kRoot;
    return true;
  }
  bool start_array(std::size_t) {
    if (place_ != Place::kTensor || field_ == "dtype") return unexpected("an array");
    (field_ == "shape" ? entry().shape : entry().data_offsets).emplace();
    place_ = Place::kNumbers;
    return true;
  }
  bool end_array() {
    place_ = Place::kTensor;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    // `position` counts read bytes, so it is one behind the last good one
    return stop(fmt::format("the header is not valid JSON (offset {})",
                            kTextStart + (position > 0 ? position - 1 : 0)));
  }

 private:
  enum class Place { kStart, kRoot, kMetadata, kTensor, kNumbers, kEnd };

  static std::string shown(std::string_view text) { return escape_for_message(text); }
  SafetensorsEntry& entry() { return header.entries.back(); }
  std::optional<std::vector<std::uint64_t>>& numbers_of(SafetensorsEntry& e) const {
    return field_ == "shape" ? e.shape : e.data_offsets;
  }
  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool unexpected(const std::string& what) {
    switch (place_) {
      case Place::kMetadata:
        return stop(
            fmt::format("__metadata__ '{}' is {}, values must be strings", shown(field_), what));
      case Place::kTensor:
      case Place::kNumbers:
        return stop(fmt::format("field '{}' of tensor '{}' is or holds {}, expected {}", field_,
                                shown(entry().name), what,
                                field_ == "dtype" ? "a string" : "whole numbers from 0"));
      case Place::kRoot:
        return stop(fmt::format("'{}' is {}, expected an object", shown(field_), what));
      default:
        return stop(fmt::format("the header is {}, expected an object", what));
    }
  }

  Place place_ = Place::kStart;
  std::string field_;  // the last key
  std::set<std::string> names_;
  std::set<std::string> fields_;
};

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text) {
  if (text.empty() || text.front() != '{') {
    return fail(ErrorCode::kInvalidFile, "the header must start with '{{' (offset {})", kTextStart);
  }
  if (const auto invalid = find_invalid_utf8(text)) {
    return fail(ErrorCode::kInvalidFile, "the header is not valid UTF-8 (offset {})",
                kTextStart + *invalid);
  }
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(text, &handler)) {
    return Error(ErrorCode::kInvalidFile, handler.problem);
  }
  return std::move(handler.header);
}

}  // namespace tern::io

#include "backend/choice/calibration_set.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace tern::backend {
namespace {

constexpr std::int64_t kMostSide = std::int64_t{1} << 24;
constexpr std::int64_t kMostRows = std::int64_t{1} << 20;
constexpr std::size_t kMostShapes = 4096;

template <class Number>
bool parse(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> words_of(std::string_view line, std::string_view separators) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = line.find_first_not_of(separators);
    if (begin == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(separators, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

bool parse_shape(std::string_view line, CalibrationShape& shape) {
  const std::vector<std::string_view> words = words_of(line, " \t\r");
  if (words.size() < 3 || words.size() > 4) return false;
  shape.format = words[0];
  if (!parse(words[1], shape.n) || !parse(words[2], shape.k) || shape.n < 1 || shape.k < 1 ||
      shape.n > kMostSide || shape.k > kMostSide)
    return false;
  if (words.size() == 3) {
    shape.rows = default_rows(false);
    return true;
  }
  for (std::string_view word : words_of(words[3], ",")) {
    std::int64_t rows = 0;
    if (!parse(word, rows) || rows < 1 || rows > kMostRows) return false;
    shape.rows.push_back(rows);
  }
  return !shape.rows.empty();
}

}  // namespace

std::vector<std::int64_t> default_rows(bool quick) {
  if (quick) return {1, 8, 64, 512};
  return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
}

std::vector<CalibrationShape> default_shapes(bool quick) {
  std::vector<CalibrationShape> shapes;
  // Attention, feed-forward and head of models of 135 M to 1.7 B parameters.
  struct Sides {
    std::int64_t n, k;
  };
  constexpr std::array kLayers = {Sides{960, 576},   Sides{576, 1536},  Sides{3072, 576},
                                  Sides{2048, 2048}, Sides{2048, 6144}, Sides{12288, 2048}};
  // Where a general kernel starves.
  constexpr Sides kFewOutputs{48, 2048};
  constexpr Sides kSquare{1024, 1024};
  constexpr Sides kLongSums{64, 8192};
  constexpr Sides kVocabulary{49152, 576};
  for (const char* format : {"f32", "f16"}) {
    for (const Sides& s : kLayers) shapes.push_back({format, s.n, s.k, default_rows(quick)});
    shapes.push_back({format, kFewOutputs.n, kFewOutputs.k, {1}});
    shapes.push_back({format, kSquare.n, kSquare.k, {1, 5, 6, 17}});
    shapes.push_back({format, kLongSums.n, kLongSums.k, {1, 16, 128}});
    shapes.push_back({format, kVocabulary.n, kVocabulary.k, {1, 8}});
  }
  return shapes;
}

Result<std::vector<CalibrationShape>> parse_shapes(std::string_view text) {
  std::vector<CalibrationShape> shapes;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    line = line.substr(0, line.find('#'));
    if (words_of(line, " \t\r").empty()) continue;
    CalibrationShape shape;
    if (!parse_shape(line, shape))
      return fail(ErrorCode::kInvalidFile,
                  "line {}: expected FORMAT OUTPUTS INPUTS [ROWS,ROWS...], as in 'f16 4096 576 "
                  "1,8,512'",
                  number);
    if (shapes.size() == kMostShapes)
      return fail(ErrorCode::kInvalidFile, "line {}: more than {} shapes", number, kMostShapes);
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace tern::backend

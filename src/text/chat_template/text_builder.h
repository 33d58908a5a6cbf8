// Builds texts piece by piece and remembers where each piece came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template/value.h"

namespace tern::text::jinja {

// What is built counts as alive while it is built.
class TextBuilder {
 public:
  explicit TextBuilder(Budget* budget, std::size_t max_bytes = kMaxStringBytes)
      : budget_(budget), max_bytes_(max_bytes) {}
  ~TextBuilder();
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;

  void append(std::string_view text, Origin origin = Origin::kTemplate);
  void append(const StringData& text) { append(text, 0, text.text.size()); }
  void append(const StringData& text, std::size_t begin, std::size_t end);  // bytes

  [[nodiscard]] Budget* budget() const { return budget_; }
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

  // The text built so far as a value; the builder is empty afterwards.
  [[nodiscard]] Value finish(bool markup = false);
  // The same without the origins.
  [[nodiscard]] std::string take();

 private:
  Budget* budget_;
  std::size_t max_bytes_;
  std::size_t held_ = 0;
  std::string text_;
  std::vector<Run> runs_;  // neighbours differ in origin
};

// Tells the origin of bytes that are asked for in ascending order.
class OriginCursor {
 public:
  explicit OriginCursor(const StringData& text) : text_(text) {}
  [[nodiscard]] Origin at(std::size_t byte) {
    if (text_.runs.empty()) return text_.origin;
    while (run_ + 1 < text_.runs.size() && text_.runs[run_].end <= byte) ++run_;
    return text_.runs[run_].origin;
  }

 private:
  const StringData& text_;
  std::size_t run_ = 0;
};

// Data if any stretch is data: for results that cannot be traced back.
[[nodiscard]] Origin overall_origin(const StringData& text);
[[nodiscard]] Value make_text(std::string text, Origin origin, Budget* budget, bool markup = false);
// str + str.
[[nodiscard]] Value join_text(const StringData& a, const StringData& b, Budget* budget);

}  // namespace tern::text::jinja

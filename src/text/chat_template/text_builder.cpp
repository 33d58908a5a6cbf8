// Builds texts piece by piece and remembers where each piece came from.
#include "text/chat_template/text_builder.h"

#include <algorithm>

#include "text/chat_template/iterate.h"

namespace tern::text::jinja {

namespace {

// What making one text object costs, in items.
constexpr std::size_t kItemsPerText = 4;

}  // namespace

TextBuilder::~TextBuilder() {
  if (budget_ != nullptr) budget_->release(held_);
}

void TextBuilder::append(std::string_view text, Origin origin) {
  if (text.empty()) return;
  if (text.size() > max_bytes_ - text_.size()) {
    raise(FaultKind::kLimit, "the template makes a text of more than {} MiB", max_bytes_ >> 20);
  }
  if (budget_ != nullptr) {
    budget_->bytes(text.size());
    budget_->hold(text.size());
    held_ += text.size();
  }
  text_.append(text);
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = text_.size();
    return;
  }
  if (budget_ != nullptr) {
    budget_->hold(sizeof(Run));
    held_ += sizeof(Run);
  }
  runs_.push_back({text_.size(), origin});
}

void TextBuilder::append(const StringData& text, std::size_t begin, std::size_t end) {
  const std::string_view all = text.text;
  if (text.runs.empty()) return append(all.substr(begin, end - begin), text.origin);
  auto run = std::upper_bound(text.runs.begin(), text.runs.end(), begin,
                              [](std::size_t at, const Run& r) { return at < r.end; });
  for (std::size_t at = begin; at < end; ++run) {
    const std::size_t stop = std::min(run->end, end);
    append(all.substr(at, stop - at), run->origin);
    at = stop;
  }
}

Value TextBuilder::finish(bool markup) {
  if (budget_ != nullptr) budget_->items(kItemsPerText);
  const Origin origin = runs_.empty() ? Origin::kTemplate : runs_.front().origin;
  std::vector<Run> runs;
  if (runs_.size() > 1) runs = std::move(runs_);
  runs_.clear();
  return Value::object(Kind::kString, std::make_shared<StringData>(budget_, take(), std::move(runs),
                                                                   origin, markup));
}

std::string TextBuilder::take() {
  if (budget_ != nullptr) budget_->release(held_);
  held_ = 0;
  runs_.clear();
  std::string text = std::move(text_);
  text_.clear();
  return text;
}

Origin overall_origin(const StringData& text) {
  if (text.runs.empty()) return text.origin;
  return Origin::kData;  // more than one run: at least one of them is data
}

Value make_text(std::string text, Origin origin, Budget* budget, bool markup) {
  if (text.size() > kMaxStringBytes) {
    raise(FaultKind::kLimit, "the template makes a text of more than {} MiB",
          kMaxStringBytes >> 20);
  }
  if (budget != nullptr) budget->bytes(text.size());
  return Value::object(
      Kind::kString,
      std::make_shared<StringData>(budget, std::move(text), std::vector<Run>{}, origin, markup));
}

Value slice_text(const StringData& text, std::size_t begin, std::size_t end, Budget* budget) {
  TextBuilder out(budget);
  if (begin < end) out.append(text, begin, end);
  return out.finish(text.markup);
}

Value join_text(const StringData& a, const StringData& b, Budget* budget) {
  TextBuilder out(budget);
  out.append(a);
  out.append(b);
  return out.finish();
}

}  // namespace tern::text::jinja

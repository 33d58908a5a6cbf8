// Holding back the bytes of unfinished characters.
#include "text/stream_decoder.h"

#include "base/utf8.h"

namespace tern::text {
namespace {

// ED and a byte from A0 on: the beginning of a surrogate in three bytes, which is never valid.
// Python's incremental decoder, the model of the published streams, waits for the third byte so
// that all of it becomes U+FFFD in one chunk.
bool ends_in_cut_surrogate(std::string_view bytes) {
  if (bytes.size() < 2) return false;
  const auto last = static_cast<unsigned char>(bytes.back());
  return bytes[bytes.size() - 2] == '\xED' && last >= 0xA0 && last <= 0xBF;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  const std::size_t held = ends_in_cut_surrogate(held_) ? 2 : incomplete_utf8_suffix(held_);
  const std::size_t ready = held_.size() - held;
  std::string shown = replace_invalid_utf8(std::string_view(held_).substr(0, ready));
  held_.erase(0, ready);
  return shown;
}

std::string Utf8Stream::flush() {
  std::string shown = replace_invalid_utf8(held_);
  held_.clear();
  return shown;
}

Result<std::string> StreamDecoder::push(std::int32_t id) {
  const auto piece = tokenizer_->piece(id);
  if (!piece.ok()) return piece.error();
  if (skip_special_ && tokenizer_->is_special(id)) return std::string();
  return utf8_.push(*piece);
}

}  // namespace tern::text

// Encoding and decoding; tokenizer_create.cpp has the checks of a vocabulary.
#include "text/tokenizer.h"

#include <algorithm>

#include "text/stop_request.h"
#include "text/unicode.h"

namespace tern::text {
namespace {

// White space at the end of text[0, end): where it starts, but not before `begin`.
std::size_t strip_left(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t start = end;  // of the white space that ends at the character read last
  for (std::size_t at = begin; at < end;) {
    const Char c = char_at(text, at);
    if (c.kind != CharClass::kSpace) {
      start = end;
    } else if (start == end) {
      start = at;
    }
    at += c.length;
  }
  return start;
}

std::size_t strip_right(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Char c = char_at(text, at);
    if (c.kind != CharClass::kSpace) break;
    at += c.length;
  }
  return at;
}

// Calls gap(std::string_view) for what lies between added tokens and token(id) for these. A special
// token that is not to be parsed still hides what overlaps with it, as with Hugging Face.
template <class Gap, class Token>
void cut_added(std::string_view text, const std::vector<AddedToken>& added,
               const AddedTokenMatcher& matcher, ParseSpecial parse, const CancelToken& cancel,
               const Gap& gap, const Token& token) {
  std::size_t done = 0;
  for (std::size_t from = 0; from < text.size();) {
    const AddedTokenMatch match = matcher.find(text, from, cancel);
    if (match.begin == match.end) break;
    from = match.end;
    const AddedToken& t = added[match.index];
    if (t.special && parse == ParseSpecial::kDefined) continue;
    const std::size_t begin = t.strips_left ? strip_left(text, done, match.begin) : match.begin;
    if (begin > done) gap(text.substr(done, begin - done));
    token(t.id);
    done = t.strips_right ? strip_right(text, match.end) : match.end;
    from = done;
  }
  if (done < text.size()) gap(text.substr(done));
}

Error too_long(std::size_t bytes) {
  return fail(ErrorCode::kInvalidArgument,
              "a text of {} bytes is too long: at most {} can be encoded at once", bytes,
              Tokenizer::kMaxTextBytes);
}

}  // namespace

void Tokenizer::encode_normalized(std::string_view text, Output& out) const {
  for_each_piece(
      *pre_, text,
      [&](std::string_view piece) {
        stop_if_requested(out.cancel);
        if (whole_words_) {
          if (const auto id = words_.find(pieces_, piece)) {
            out.ids.push_back(*id);
            return;
          }
        }
        bpe_.encode(piece, out.scratch, out.ids);
      },
      out.cancel);
}

void Tokenizer::encode_plain(std::string_view text, Output& out) const {
  encode_normalized(nfc_ ? to_nfc(text, out.normal_form, out.cancel) : text, out);
}

void Tokenizer::encode_parsed(std::string_view text, ParseSpecial parse, Output& out) const {
  const auto token = [&](std::int32_t id) { out.ids.push_back(id); };
  cut_added(
      text, added_, raw_matcher_, parse, out.cancel,
      [&](std::string_view gap) {
        if (normalized_matcher_.empty()) return encode_plain(gap, out);
        const std::string_view normal = nfc_ ? to_nfc(gap, out.normal_form, out.cancel) : gap;
        cut_added(
            normal, added_, normalized_matcher_, parse, out.cancel,
            [&](std::string_view rest) { encode_normalized(rest, out); }, token);
      },
      token);
}

std::vector<std::int32_t> Tokenizer::ids_of(std::string_view text, const EncodeOptions& options,
                                            Output& out) const {
  if (options.add_special && add_begin_) out.ids.push_back(*begin_);
  if (options.parse_special == ParseSpecial::kNone) {
    encode_plain(text, out);
  } else {
    encode_parsed(text, options.parse_special, out);
  }
  if (options.add_special && add_end_) out.ids.push_back(*end_);
  return std::move(out.ids);
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text,
                                                    const EncodeOptions& options,
                                                    const CancelToken& cancel) const {
  if (text.size() > kMaxTextBytes) return too_long(text.size());
  Output out{{}, BpeScratch(cancel), {}, cancel};
  try {
    return ids_of(text, options, out);
  } catch (const Error& stopped) {
    return stopped;
  }
}

Result<std::vector<std::int32_t>> Tokenizer::encode_segments(std::span<const TextSegment> segments,
                                                             const CancelToken& cancel) const {
  Output out{{}, BpeScratch(cancel), {}, cancel};
  try {
    return ids_of(segments, out);
  } catch (const Error& stopped) {
    return stopped;
  }
}

Result<std::vector<std::int32_t>> Tokenizer::ids_of(std::span<const TextSegment> segments,
                                                    Output& out) const {
  std::string pending;  // ordinary text that may go on in the next segment
  std::string run;      // neighbours of one origin, so that a token may be written in parts
  std::size_t bytes = 0;
  const auto encode_pending = [&] {
    encode_plain(pending, out);
    pending.clear();
  };
  for (std::size_t i = 0; i < segments.size();) {
    const bool from_template = segments[i].from_template;
    run.clear();
    for (; i < segments.size() && segments[i].from_template == from_template; ++i) {
      bytes += segments[i].text.size();
      if (bytes > kMaxTextBytes) return too_long(bytes);
      run += segments[i].text;
    }
    if (from_template) {
      cut_added(
          run, added_, matcher_, ParseSpecial::kAll, out.cancel,
          [&](std::string_view gap) { pending += gap; },
          [&](std::int32_t id) {
            encode_pending();
            out.ids.push_back(id);
          });
      continue;
    }
    std::size_t done = 0;
    while (done < run.size()) {
      const AddedTokenMatch match = matcher_.find(run, done, out.cancel);
      pending.append(run, done, match.begin - done);
      done = match.end;
      if (match.begin == match.end) break;
      encode_pending();
      encode_plain(std::string_view(run).substr(match.begin, match.end - match.begin), out);
    }
  }
  encode_pending();
  return std::move(out.ids);
}

Result<std::string_view> Tokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= size()) {
    return fail(ErrorCode::kInvalidArgument, "there is no token {}: ids go from 0 to {}", id,
                size() - 1);
  }
  return pieces_[static_cast<std::size_t>(id)];
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    const auto token = piece(id);
    if (!token.ok()) return token.error();
    if (!skip_special || !is_special(id)) bytes += *token;
  }
  return bytes;
}

Result<TokenType> Tokenizer::type(std::int32_t id) const {
  const auto token = piece(id);
  if (!token.ok()) return token.error();
  return types_[static_cast<std::size_t>(id)];
}

bool Tokenizer::is_special(std::int32_t id) const {
  return id >= 0 && id < size() && types_[static_cast<std::size_t>(id)] == TokenType::kControl;
}

std::optional<std::int32_t> Tokenizer::find_added(std::string_view content) const {
  const AddedTokenMatch match = matcher_.find(content, 0);
  if (match.begin != 0 || match.end != content.size() || content.empty()) return std::nullopt;
  return added_[match.index].id;
}

std::vector<std::uint8_t> Tokenizer::missing_bytes() const {
  std::vector<std::uint8_t> missing;
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (bpe_.byte_token(byte) < 0) missing.push_back(byte);
  }
  return missing;
}

}  // namespace tern::text

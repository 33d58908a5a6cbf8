// The public Tokenizer over text::Tokenizer and the readers of its files.
#include <filesystem>

#include "base/error.h"
#include "base/file_map.h"
#include "io/gguf.h"
#include "io/gguf_tokenizer.h"
#include "io/tokenizer_json.h"
#include "runtime/guarded.h"
#include "runtime/path_error.h"
#include "runtime/tokenizer_impl.h"

namespace tern {
namespace {

Result<text::TokenizerData> read_data(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path p(path);
  if (std::filesystem::is_directory(p, ignored) || p.extension() == ".json") {
    Result<text::TokenizerData> data = io::read_tokenizer_json(p);
    if (!data.ok()) return runtime::with_path(path, data.error());
    return data;
  }
  Result<FileMap> map = FileMap::open(p);
  TERN_TRY(map);  // the message begins with the path
  auto shared = std::make_shared<const FileMap>(std::move(*map));
  const Result<io::GgufFile> file = io::GgufFile::open(shared);
  if (!file.ok()) return runtime::with_path(path, file.error());
  Result<text::TokenizerData> data = io::read_gguf_tokenizer(*file);
  if (!data.ok()) return runtime::with_path(path, data.error());
  return data;
}

}  // namespace

Result<Tokenizer> Tokenizer::open(const std::string& path) {
  return runtime::guarded(path, "for the vocabulary", [&]() -> Result<Tokenizer> {
    const Result<text::TokenizerData> data = read_data(path);
    TERN_TRY(data);
    Result<text::Tokenizer> made = text::Tokenizer::create(*data);
    if (!made.ok()) return runtime::with_path(path, made.error());
    return Tokenizer(std::make_shared<const Impl>(std::move(*made)));
  });
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text,
                                                    const EncodeOptions& options,
                                                    const CancelToken& cancel) const {
  return runtime::guarded("[encode]", "for the tokens",
                          [&] { return impl_->tokenizer.encode(text, options, cancel); });
}

Result<std::vector<std::int32_t>> Tokenizer::encode_chat(std::span<const TextSegment> segments,
                                                         const CancelToken& cancel) const {
  return runtime::guarded("[encode]", "for the tokens",
                          [&] { return impl_->tokenizer.encode_segments(segments, cancel); });
}

std::vector<std::uint8_t> Tokenizer::missing_bytes() const {
  return impl_->tokenizer.missing_bytes();
}

Result<std::string> Tokenizer::piece(std::int32_t id) const {
  return runtime::guarded("[decode]", "for the text", [&]() -> Result<std::string> {
    const Result<std::string_view> bytes = impl_->tokenizer.piece(id);
    TERN_TRY(bytes);
    return std::string(*bytes);
  });
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  return runtime::guarded("[decode]", "for the text",
                          [&] { return impl_->tokenizer.decode(ids, skip_special); });
}

TokenStream Tokenizer::stream(bool skip_special) const {
  return TokenStream(std::make_unique<TokenStream::Impl>(
      TokenStream::Impl{impl_, text::StreamDecoder(impl_->tokenizer, skip_special)}));
}

std::int64_t Tokenizer::size() const { return impl_->tokenizer.size(); }
bool Tokenizer::is_special(std::int32_t id) const { return impl_->tokenizer.is_special(id); }
const std::vector<std::int32_t>& Tokenizer::end_tokens() const {
  return impl_->tokenizer.end_tokens();
}
std::int32_t Tokenizer::begin_token() const { return impl_->tokenizer.begin_token().value_or(-1); }
bool Tokenizer::adds_begin_token() const { return impl_->tokenizer.adds_begin_token(); }
const std::string& Tokenizer::chat_template() const { return impl_->tokenizer.chat_template(); }
const std::vector<std::string>& Tokenizer::warnings() const { return impl_->tokenizer.warnings(); }

TokenStream::TokenStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenStream::TokenStream(TokenStream&&) noexcept = default;
TokenStream& TokenStream::operator=(TokenStream&&) noexcept = default;
TokenStream::~TokenStream() = default;
Result<std::string> TokenStream::push(std::int32_t id) {
  return runtime::guarded("[decode]", "for the text", [&] { return impl_->decoder.push(id); });
}
std::string TokenStream::flush() { return impl_->decoder.flush(); }

}  // namespace tern

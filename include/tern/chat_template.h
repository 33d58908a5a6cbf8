// Chat templates (a Jinja subset): from a list of messages to the text that a model continues.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/error.h"
#include "tern/tokenizer.h"

namespace tern {

struct RenderOptions {
  // Texts of the begin and end tokens for requests that do not give them; absent: undefined in the
  // template.
  std::optional<std::string> bos_token{};
  std::optional<std::string> eos_token{};
  // The clock of strftime_now, seconds since 1970 in UTC; absent: now.
  std::optional<std::int64_t> now{};
};

struct RenderedChat {
  std::vector<TextSegment> segments;
  [[nodiscard]] std::string text() const;
};

// Immutable after parsing; may be used from any thread.
class ChatTemplate {
 public:
  struct Impl;
  // Errors (kTemplate) carry line and column.
  [[nodiscard]] static Result<ChatTemplate> parse(std::string source);

  // `request` is JSON: a list of messages, or an object {messages, tools, documents, kwargs
  // (chat_template_kwargs), add_generation_prompt (true), continue_final_message, bos_token,
  // eos_token, raw}. Objects keep the order of their keys. An error that the template raises comes
  // through word for word (kTemplate).
  [[nodiscard]] Result<RenderedChat> render(std::string_view request,
                                            const RenderOptions& options) const;
  // Renders with exactly these variables (a JSON object) and nothing else.
  [[nodiscard]] Result<RenderedChat> render_variables(std::string_view variables,
                                                      const RenderOptions& options) const;

  explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tern

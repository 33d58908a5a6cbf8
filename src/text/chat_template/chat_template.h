// Chat templates: conversation in, prompt out, with the template that came with the model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template/clock.h"
#include "text/chat_template/json.h"
#include "text/chat_template/value.h"

namespace tern::text {

using jinja::Dict;
using jinja::make_dict;
using jinja::Origin;
using jinja::Value;
using jinja::value_from_json;

// A stretch of rendered text. Special tokens are parsed only in what the template wrote itself;
// what comes from messages, tools, documents or variables is plain text.
struct Segment {
  std::string text;
  bool from_template;
};

struct RenderedPrompt {
  std::vector<Segment> segments;  // neighbours differ in from_template
  [[nodiscard]] std::string text() const;
};

struct ChatRequest {
  Value messages = Value::list({});  // list of dictionaries
  Value tools = Value::none();       // list or none
  Value documents = Value::none();   // list or none
  Value kwargs = Value::none();      // dictionary of further variables, or none
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  // Undefined in the template when absent. They count as the template's own text.
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  bool raw = false;  // the messages reach the template unchanged
  Clock now;
};

// Immutable and shared between copies; any number of threads may render with it.
class ChatTemplate {
 public:
  // Errors (kTemplate) name line and column: syntax, size above 1 MiB, nesting above 128, invalid
  // UTF-8, statements that reach outside, filters and tests that do not exist.
  [[nodiscard]] static Result<ChatTemplate> parse(std::string_view source);

  // Prepares the messages as Hugging Face does (null fields dropped, thoughts under all their
  // names), renders, and cuts behind the last message if it is to be continued.
  //
  // kTemplate: the template raised an error (its message, word for word) or made one (line and
  // reason). kInvalidArgument: a request that no template can answer.
  [[nodiscard]] Result<RenderedPrompt> render(const ChatRequest& request) const;

  // Renders with exactly these variables; `variables` is a dictionary.
  [[nodiscard]] Result<RenderedPrompt> render_with(const Value& variables, const Clock& now) const;

  // Whether the template spells out this text in itself or in one of its string literals: added
  // tokens that a template writes are treated like special ones.
  [[nodiscard]] bool writes(std::string_view text) const;

 private:
  struct Compiled;
  explicit ChatTemplate(std::shared_ptr<const Compiled> compiled);
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tern::text

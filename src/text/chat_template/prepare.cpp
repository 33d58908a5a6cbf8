// What happens to the messages before a template sees them, and to the text after it.
#include "text/chat_template/prepare.h"

#include <array>

#include "base/error.h"
#include "text/chat_template/characters.h"
#include "text/chat_template/text_builder.h"

namespace tern::text {
namespace {

// Marks the end of the message that is continued; the name is known to published templates.
constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::array<std::string_view, 3> kThoughts = {"reasoning_content", "thinking",
                                                       "reasoning"};

Error refuse(std::string_view text) { return fail(ErrorCode::kInvalidArgument, "{}", text); }

// Drops null fields, gives thoughts all their names.
Value normalized(const Value& message) {
  const Dict& given = message.dict().dict;
  Value thought = Value::none();
  for (const std::string_view name : kThoughts) {
    const Value* found = given.find(name);
    if (found == nullptr || found->is_none()) continue;
    thought = *found;
    break;
  }
  Dict fields;
  if (!thought.is_none()) {
    // Its own thoughts win over the copy, but keep the copy's place at the front.
    const Value* own = given.find("thinking");
    fields.set("thinking", own != nullptr && !own->is_none() ? *own : thought);
  }
  for (const Dict::Entry& entry : given.entries()) {
    if (!entry.value.is_none()) fields.set(entry.key, entry.value, nullptr);
  }
  if (!thought.is_none()) fields.set("reasoning_content", thought);
  return make_dict(std::move(fields));
}

Value with_tag(const Value& text) {
  return jinja::join_text(text.string(), Value::string(std::string(kTag)).string(), nullptr);
}

Value with_field(const Value& dict, std::string_view name, Value value) {
  Dict fields = dict.dict().dict;
  fields.set(name, std::move(value));
  return make_dict(std::move(fields));
}

// The last message with the tag behind its text; `continued` becomes that text.
Result<Value> tagged(const Value& message, std::string& continued) {
  const Value* content = message.dict().dict.find("content");
  if (content == nullptr) {
    return refuse(
        "continue_final_message is set but the final message has no \"content\" to continue!");
  }
  if (content->is_string()) {
    continued = jinja::trim(content->text());
    return with_field(message, "content", with_tag(*content));
  }
  if (!content->is(jinja::Kind::kList)) {
    return refuse("continue_final_message is set but the content of the final message is no text");
  }
  std::vector<Value> parts = content->items();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const Value* text = part->is_dict() ? part->dict().dict.find("text") : nullptr;
    if (text == nullptr) continue;
    if (!text->is_string()) break;
    continued = jinja::trim(text->text());
    *part = with_field(*part, "text", with_tag(*text));
    return with_field(message, "content", Value::list(std::move(parts)));
  }
  return refuse(
      "continue_final_message is set but we could not find any text to continue in the final "
      "message!");
}

void cut(RenderedPrompt& prompt, std::size_t size) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < prompt.segments.size(); ++i) {
    Segment& segment = prompt.segments[i];
    if (end + segment.text.size() < size) {
      end += segment.text.size();
      continue;
    }
    segment.text.resize(size - end);
    prompt.segments.resize(segment.text.empty() ? i : i + 1);
    return;
  }
}

}  // namespace

Result<PreparedMessages> prepare_messages(const ChatRequest& request, bool mentions_content) {
  if (request.raw) {
    if (request.continue_final_message) {
      return refuse("continue_final_message needs prepared messages and does not go with raw");
    }
    return PreparedMessages{request.messages, {}};
  }
  if (!request.messages.is(jinja::Kind::kList)) {
    return fail(ErrorCode::kInvalidArgument, "messages is a list, not {}",
                jinja::json_type_name(request.messages));
  }
  std::vector<Value> messages = request.messages.items();
  if (messages.empty()) {
    return refuse(
        "Cannot apply chat template to an empty conversation. Provide at least one message.");
  }
  if (request.continue_final_message && request.add_generation_prompt) {
    return refuse("continue_final_message and add_generation_prompt are not compatible.");
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_dict()) {
      return fail(ErrorCode::kInvalidArgument, "message {} is an object, not {}", i,
                  jinja::json_type_name(messages[i]));
    }
    messages[i] = normalized(messages[i]);
  }
  PreparedMessages prepared;
  if (request.continue_final_message) {
    auto last = tagged(messages.back(), prepared.continued);
    if (!last.ok()) return last.error();
    if (!mentions_content) {
      return refuse("continue_final_message is set but the chat template reads no \"content\"");
    }
    messages.back() = std::move(*last);
  }
  prepared.messages = Value::list(std::move(messages));
  return prepared;
}

Result<RenderedPrompt> cut_at_tag(RenderedPrompt prompt, const std::string& continued) {
  const std::string text = prompt.text();
  const std::string_view tag = jinja::trim_right(kTag);
  const std::size_t at = jinja::find_last_text(text, tag);
  if (at == std::string::npos || jinja::find_text(text, continued) == std::string::npos) {
    return refuse(
        "continue_final_message is set but the final message does not appear in the chat after "
        "applying the chat template! This can happen if the chat template deletes portions of the "
        "final message. Please verify the chat template and final message in your chat to ensure "
        "they are compatible.");
  }
  std::string_view kept = std::string_view(text).substr(0, at);
  // The template cut the white space behind the message, so what stood before it goes as well.
  if (!std::string_view(text).substr(at).starts_with(kTag)) kept = jinja::trim_right(kept);
  cut(prompt, kept.size());
  return prompt;
}

}  // namespace tern::text

// The public ChatTemplate over text::ChatTemplate: requests arrive as JSON.
#include <ctime>

#include "base/error.h"
#include "runtime/guarded.h"
#include "tern/chat_template.h"
#include "text/chat_template/chat_template.h"
#include "text/chat_template/json.h"

namespace tern {

struct ChatTemplate::Impl {
  explicit Impl(text::ChatTemplate t) : chat_template(std::move(t)) {}
  text::ChatTemplate chat_template;
};

namespace {

using text::Value;
using text::jinja::Dict;
using text::jinja::Kind;

// The first second of year 0 and the last one of year 9999.
constexpr std::int64_t kFirstSecond = -62'167'219'200;
constexpr std::int64_t kLastSecond = 253'402'300'799;

Result<text::Clock> clock_of(const RenderOptions& options) {
  if (!options.now) return text::Clock::now();
  const auto seconds = static_cast<std::time_t>(*options.now);
  std::tm t{};
  if (*options.now < kFirstSecond || *options.now > kLastSecond ||
      gmtime_r(&seconds, &t) == nullptr)
    return fail(ErrorCode::kInvalidArgument,
                "now is {} seconds after 1970, expected {} to {} (the years 0 to 9999)",
                *options.now, kFirstSecond, kLastSecond);
  return text::Clock{t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec};
}

Error wrong_type(std::string_view field, const Value& value, std::string_view expected) {
  return fail(ErrorCode::kInvalidArgument, "the request's field '{}' is {}, expected {}", field,
              text::jinja::json_type_name(value), expected);
}

// A field of the request, or nullptr when it is absent.
const Value* field(const Dict& request, std::string_view name) { return request.find(name); }

Result<bool> flag(const Dict& request, std::string_view name, bool fallback) {
  const Value* value = field(request, name);
  if (!value || value->is_none()) return fallback;
  if (!value->is(Kind::kBool)) return wrong_type(name, *value, "true or false");
  return value->as_bool();
}

// Lists, or none when absent or null.
Result<Value> list_or_none(const Dict& request, std::string_view name) {
  const Value* value = field(request, name);
  if (!value || value->is_none()) return Value::none();
  if (!value->is_sequence()) return wrong_type(name, *value, "a list");
  return *value;
}

// The text in the request; null means undefined; absent means what the model says.
Result<std::optional<std::string>> token(const Dict& request, std::string_view name,
                                         const std::optional<std::string>& of_model) {
  const Value* value = field(request, name);
  if (!value) return of_model;
  if (value->is_none()) return std::optional<std::string>();
  if (!value->is_string()) return wrong_type(name, *value, "a string");
  return std::optional<std::string>(value->text());
}

Result<text::ChatRequest> read_object(const Dict& request, const RenderOptions& options) {
  text::ChatRequest r;
  const Value* messages = field(request, "messages");
  if (!messages) return fail(ErrorCode::kInvalidArgument, "the request has no field 'messages'");
  if (!messages->is_sequence()) return wrong_type("messages", *messages, "a list");
  r.messages = *messages;
  Result<Value> tools = list_or_none(request, "tools");
  TERN_TRY(tools);
  r.tools = *tools;
  Result<Value> documents = list_or_none(request, "documents");
  TERN_TRY(documents);
  r.documents = *documents;
  const Value* kwargs = field(request, "kwargs");
  if (!kwargs) kwargs = field(request, "chat_template_kwargs");
  if (kwargs && !kwargs->is_none()) {
    if (!kwargs->is_dict()) return wrong_type("kwargs", *kwargs, "an object");
    r.kwargs = *kwargs;
  }
  const Result<bool> prompt = flag(request, "add_generation_prompt", true);
  TERN_TRY(prompt);
  r.add_generation_prompt = *prompt;
  const Result<bool> continued = flag(request, "continue_final_message", false);
  TERN_TRY(continued);
  r.continue_final_message = *continued;
  const Result<bool> raw = flag(request, "raw", false);
  TERN_TRY(raw);
  r.raw = *raw;
  Result<std::optional<std::string>> bos = token(request, "bos_token", options.bos_token);
  TERN_TRY(bos);
  r.bos_token = *bos;
  Result<std::optional<std::string>> eos = token(request, "eos_token", options.eos_token);
  TERN_TRY(eos);
  r.eos_token = *eos;
  return r;
}

Result<text::ChatRequest> read_request(std::string_view json, const RenderOptions& options) {
  Result<Value> value = text::value_from_json(json);
  TERN_TRY(value);
  if (value->is_dict()) return read_object(value->dict().dict, options);
  if (!value->is_sequence())
    return fail(ErrorCode::kInvalidArgument,
                "a request is a list of messages or an object with 'messages', this is {}",
                text::jinja::json_type_name(*value));
  text::ChatRequest r;
  r.messages = *value;
  r.bos_token = options.bos_token;
  r.eos_token = options.eos_token;
  return r;
}

RenderedChat to_public(text::RenderedPrompt prompt) {
  RenderedChat chat;
  for (text::Segment& s : prompt.segments)
    chat.segments.push_back({std::move(s.text), s.from_template});
  return chat;
}

}  // namespace

std::string RenderedChat::text() const {
  std::string all;
  for (const TextSegment& s : segments) all += s.text;
  return all;
}

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  return runtime::guarded("chat template", "to parse it", [&]() -> Result<ChatTemplate> {
    Result<text::ChatTemplate> parsed = text::ChatTemplate::parse(source);
    TERN_TRY(parsed);
    return ChatTemplate(std::make_shared<const Impl>(std::move(*parsed)));
  });
}

Result<RenderedChat> ChatTemplate::render(std::string_view request,
                                          const RenderOptions& options) const {
  return runtime::guarded("chat template", "to render the request", [&]() -> Result<RenderedChat> {
    Result<text::ChatRequest> r = read_request(request, options);
    TERN_TRY(r);
    const Result<text::Clock> now = clock_of(options);
    TERN_TRY(now);
    r->now = *now;
    Result<text::RenderedPrompt> prompt = impl_->chat_template.render(*r);
    TERN_TRY(prompt);
    return to_public(std::move(*prompt));
  });
}

Result<RenderedChat> ChatTemplate::render_variables(std::string_view variables,
                                                    const RenderOptions& options) const {
  return runtime::guarded("chat template", "to render the request", [&]() -> Result<RenderedChat> {
    const Result<Value> value = text::value_from_json(variables);
    TERN_TRY(value);
    if (!value->is_dict())
      return fail(ErrorCode::kInvalidArgument, "the variables are {}, expected an object",
                  text::jinja::json_type_name(*value));
    const Result<text::Clock> now = clock_of(options);
    TERN_TRY(now);
    Result<text::RenderedPrompt> prompt = impl_->chat_template.render_with(*value, *now);
    TERN_TRY(prompt);
    return to_public(std::move(*prompt));
  });
}

}  // namespace tern

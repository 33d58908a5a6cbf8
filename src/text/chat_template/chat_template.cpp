// Chat templates: conversation in, prompt out, with the template that came with the model.
#include "text/chat_template/chat_template.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/own_stack.h"
#include "text/chat_template/characters.h"
#include "text/chat_template/evaluator.h"
#include "text/chat_template/parser.h"
#include "text/chat_template/prepare.h"
#include "text/chat_template/resolver.h"

namespace tern::text {
namespace {

constexpr std::array<std::string_view, 4> kOwnVariables = {"messages", "tools", "documents",
                                                           "add_generation_prompt"};

// Parser and evaluator recurse, up to the depths of chat_template/limits.h; the deepest programs
// of the tests need about 700 KiB in a release build and 4 MiB under sanitizers.
constexpr std::size_t kStackBytes = std::size_t{16} << 20;

std::vector<Segment> segments_of(const jinja::TextBuilder& out) {
  std::vector<Segment> segments;
  std::size_t begin = 0;
  for (const jinja::Run& run : out.runs()) {
    segments.push_back(
        {std::string(out.text().substr(begin, run.end - begin)), run.origin == Origin::kTemplate});
    begin = run.end;
  }
  return segments;
}

}  // namespace

struct ChatTemplate::Compiled {
  jinja::Template tree;
  bool mentions_content = false;
};

std::string RenderedPrompt::text() const {
  std::string all;
  for (const Segment& segment : segments) all += segment.text;
  return all;
}

ChatTemplate::ChatTemplate(std::shared_ptr<const Compiled> compiled)
    : compiled_(std::move(compiled)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  if (source.size() > jinja::kMaxSourceBytes) {
    return fail(ErrorCode::kTemplate, "the chat template has {} bytes; at most {} are allowed",
                source.size(), jinja::kMaxSourceBytes);
  }
  if (const auto at = jinja::find_invalid_utf8(source)) {
    return fail(ErrorCode::kTemplate, "the chat template's byte {} is not valid UTF-8", *at);
  }
  try {
    auto compiled = std::make_shared<Compiled>();
    run_on_own_stack(kStackBytes, [&] {
      compiled->tree = jinja::parse_template(jinja::normalize_source(source));
      jinja::resolve_names(compiled->tree);
    });
    compiled->mentions_content = source.find("content") != std::string_view::npos;
    return ChatTemplate(std::move(compiled));
  } catch (const jinja::TemplateFault& fault) {
    return jinja::to_error(fault, 1);
  }
}

Result<RenderedPrompt> ChatTemplate::render_with(const Value& variables, const Clock& now) const {
  if (!variables.is_dict()) {
    return fail(ErrorCode::kInvalidArgument,
                "the variables of a chat template are an object, not {}",
                jinja::json_type_name(variables));
  }
  jinja::Budget budget;
  jinja::TextBuilder out(&budget, jinja::kMaxOutputBytes);
  jinja::Evaluator evaluator(compiled_->tree, budget, now);
  try {
    run_on_own_stack(kStackBytes, [&] { evaluator.render(variables.dict().dict, out); });
    return RenderedPrompt{segments_of(out)};
  } catch (const jinja::TemplateFault& fault) {
    return jinja::to_error(fault, evaluator.line());
  }
}

Result<RenderedPrompt> ChatTemplate::render(const ChatRequest& request) const {
  auto messages = prepare_messages(request, compiled_->mentions_content);
  if (!messages.ok()) return messages.error();
  Dict variables;
  if (request.bos_token) {
    variables.set("bos_token", Value::string(*request.bos_token, Origin::kTemplate));
  }
  if (request.eos_token) {
    variables.set("eos_token", Value::string(*request.eos_token, Origin::kTemplate));
  }
  if (!request.kwargs.is_none()) {
    if (!request.kwargs.is_dict()) {
      return fail(ErrorCode::kInvalidArgument, "chat_template_kwargs is an object, not {}",
                  jinja::json_type_name(request.kwargs));
    }
    for (const Dict::Entry& entry : request.kwargs.dict().dict.entries()) {
      const bool taken = entry.key.is_string() &&
                         std::find(kOwnVariables.begin(), kOwnVariables.end(), entry.key.text()) !=
                             kOwnVariables.end();
      if (taken) {
        return fail(ErrorCode::kInvalidArgument,
                    "chat_template_kwargs may not set '{}': give it as a field of its own",
                    entry.key.text());
      }
      variables.set(entry.key, entry.value, nullptr);
    }
  }
  variables.set("messages", messages->messages);
  variables.set("tools", request.tools);
  variables.set("documents", request.documents);
  variables.set("add_generation_prompt", Value::boolean(request.add_generation_prompt));
  auto prompt = render_with(make_dict(std::move(variables)), request.now);
  if (!prompt.ok() || !request.continue_final_message) return prompt;
  return cut_at_tag(std::move(*prompt), messages->continued);
}

bool ChatTemplate::writes(std::string_view text) const {
  return std::any_of(compiled_->tree.literals.begin(), compiled_->tree.literals.end(),
                     [&](const std::string& literal) {
                       return jinja::find_text(literal, text) != std::string_view::npos;
                     });
}

}  // namespace tern::text

// Builds a chat request from flags and turns it into tokens.
#include "cli/chat.h"

#include <nlohmann/json.hpp>

#include "cli/cli_error.h"
#include "cli/file_text.h"
#include "cli/json_text.h"
#include "cli/missing_bytes.h"
#include "cli/utf8_text.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

void check_utf8(const std::string& subject, const std::string& text) {
  const std::size_t bad = find_invalid_utf8(text);
  if (bad == std::string::npos) return;
  fail(ErrorCode::kInvalidArgument, subject,
       "byte {} (0x{:02x}) is not valid UTF-8; --raw sends any bytes", bad,
       static_cast<unsigned char>(text[bad]));
}

// Where the template is from.
std::string template_subject(const Context& context, const Model& model) {
  const Arguments& arguments = context.arguments;
  if (arguments.has(Flag::kChatTemplate)) return arguments.spelling(Flag::kChatTemplate);
  if (arguments.has(Flag::kChatTemplateFile)) return arguments.text(Flag::kChatTemplateFile);
  return model.info().path;
}

ChatTemplate choose_template(const Context& context, const Model& model) {
  const Arguments& arguments = context.arguments;
  if (arguments.has(Flag::kChatTemplate)) {
    return take(arguments.spelling(Flag::kChatTemplate),
                ChatTemplate::parse(arguments.text(Flag::kChatTemplate)));
  }
  if (arguments.has(Flag::kChatTemplateFile)) {
    const std::string path = arguments.text(Flag::kChatTemplateFile);
    return take(path,
                ChatTemplate::parse(read_file(path, InputLimit::kTemplate, context.interrupt)));
  }
  Result<ChatTemplate> own = model.chat_template();
  if (!own.ok() && own.error().code() == ErrorCode::kNotFound) {
    fail(ErrorCode::kNotFound, model.info().path,
         "has no chat template; give --raw or --chat-template-file FILE");
  }
  return take(model.info().path, std::move(own));
}

Json chat_request(const Context& context, const Model& model, const std::string& subject,
                  const std::string& text) {
  const Arguments& arguments = context.arguments;
  Json messages = Json::array();
  if (arguments.has(Flag::kSystemPrompt) || arguments.has(Flag::kSystemPromptFile)) {
    const bool is_file = arguments.has(Flag::kSystemPromptFile);
    const std::string system = is_file ? read_file(arguments.text(Flag::kSystemPromptFile),
                                                   InputLimit::kPrompt, context.interrupt)
                                       : arguments.text(Flag::kSystemPrompt);
    check_utf8(
        is_file ? arguments.text(Flag::kSystemPromptFile) : arguments.spelling(Flag::kSystemPrompt),
        system);
    messages.push_back({{"role", "system"}, {"content", system}});
  }
  check_utf8(subject, text);
  messages.push_back({{"role", "user"}, {"content", text}});
  Json kwargs = Json::object();
  if (arguments.has(Flag::kChatTemplateKwargs)) {
    kwargs = Json::parse(arguments.text(Flag::kChatTemplateKwargs));
  }
  // The family's default: these models answer without a thought unless somebody asks for one.
  if (model.info().architecture == "qwen3" && !kwargs.contains("enable_thinking")) {
    kwargs["enable_thinking"] = false;
  }
  Json request = Json::object();
  request["messages"] = std::move(messages);
  request["kwargs"] = std::move(kwargs);
  return request;
}

}  // namespace

RenderOptions render_options(const Tokenizer& tokenizer) {
  RenderOptions options;
  const auto text_of = [&](std::int32_t id) -> std::optional<std::string> {
    Result<std::string> piece = tokenizer.piece(id);
    if (!piece.ok()) return std::nullopt;
    return std::move(piece).value();
  };
  if (tokenizer.begin_token() >= 0) options.bos_token = text_of(tokenizer.begin_token());
  if (!tokenizer.end_tokens().empty()) options.eos_token = text_of(tokenizer.end_tokens().front());
  return options;
}

void check_chat_flags(const Arguments& arguments) {
  static constexpr Flag kChatFlags[] = {Flag::kSystemPrompt, Flag::kSystemPromptFile,
                                        Flag::kChatTemplate, Flag::kChatTemplateFile,
                                        Flag::kChatTemplateKwargs};
  for (const Flag flag : kChatFlags) {
    if (arguments.on(Flag::kRaw) && arguments.source(flag) == Source::kCommandLine) {
      fail(ErrorCode::kUsage, arguments.spelling(flag),
           "has no effect with --raw, which uses no template");
    }
  }
  const auto exclude = [&](Flag a, Flag b) {
    if (arguments.has(a) && arguments.has(b)) {
      fail(ErrorCode::kUsage, arguments.spelling(b), "there is {} already", arguments.spelling(a));
    }
  };
  exclude(Flag::kSystemPrompt, Flag::kSystemPromptFile);
  exclude(Flag::kChatTemplate, Flag::kChatTemplateFile);
  if (arguments.has(Flag::kJinja) && !arguments.on(Flag::kJinja)) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kJinja),
         "templates are always rendered; --raw uses none");
  }
  if (arguments.has(Flag::kChatTemplate) &&
      arguments.text(Flag::kChatTemplate).find('{') == std::string::npos) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kChatTemplate),
         "'{}' is a name, and this build has no templates of its own; give the text of one",
         arguments.text(Flag::kChatTemplate));
  }
  if (arguments.has(Flag::kChatTemplateKwargs)) {
    const std::string subject = arguments.spelling(Flag::kChatTemplateKwargs);
    const std::string text = arguments.text(Flag::kChatTemplateKwargs);
    try {
      if (!json_members(subject, text)) fail(ErrorCode::kUsage, subject, "is no JSON object");
    } catch (const Error& error) {
      throw Error(ErrorCode::kUsage, error.message());
    }
  }
}

std::vector<std::int32_t> prompt_ids(const Context& context, const Model& model,
                                     const std::string& subject, const std::string& text) {
  const Tokenizer& tokenizer = model.tokenizer();
  const CancelToken& cancel = context.interrupt.token();
  if (context.arguments.on(Flag::kRaw)) {
    std::vector<std::int32_t> ids = take(subject, tokenizer.encode(text, {}, cancel));
    warn_missing_bytes(tokenizer, subject, text, ids);
    return ids;
  }
  const ChatTemplate chat_template = choose_template(context, model);
  const Json request = chat_request(context, model, subject, text);
  const Flag kwargs = Flag::kChatTemplateKwargs;
  Result<RenderedChat> rendered = chat_template.render(request.dump(), render_options(tokenizer));
  const bool is_of_request =
      !rendered.ok() && rendered.error().code() == ErrorCode::kInvalidArgument;
  const RenderedChat chat =
      take(is_of_request ? context.arguments.spelling(kwargs) : template_subject(context, model),
           std::move(rendered));
  std::vector<std::int32_t> ids = take(subject, tokenizer.encode_chat(chat.segments, cancel));
  warn_missing_bytes(tokenizer, subject, chat.text(), ids);
  return ids;
}

}  // namespace tern::cli

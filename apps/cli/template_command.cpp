// `tern template`: the exact text that a chat request would be turned into.
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/chat.h"
#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/file_text.h"
#include "cli/json_text.h"
#include "cli/model_setup.h"
#include "cli/utf8_text.h"
#include "tern/chat_template.h"
#include "tern/tokenizer.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

// "2026-11-30 16:03:21" as seconds since 1970, UTC.
std::int64_t parse_time(const std::string& spelling, const std::string& text) {
  std::tm time{};
  int consumed = 0;
  const int fields =
      std::sscanf(text.c_str(), "%4d-%2d-%2d %2d:%2d:%2d%n", &time.tm_year, &time.tm_mon,
                  &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec, &consumed);
  const std::tm given = time;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  const std::time_t seconds = timegm(&time);
  // timegm() carries the 31st of June over; that is a mistake here.
  const bool is_date = fields == 6 && static_cast<std::size_t>(consumed) == text.size() &&
                       time.tm_mon + 1 == given.tm_mon && time.tm_mday == given.tm_mday &&
                       time.tm_hour == given.tm_hour && time.tm_min == given.tm_min &&
                       time.tm_sec == given.tm_sec;
  if (!is_date) {
    fail(ErrorCode::kUsage, spelling, "'{}' is no time such as 2026-11-30 16:03:21", text);
  }
  return seconds;
}

// The template of the command line, and the texts of its tokens.
struct Renderer {
  std::string subject;  // where the template is from
  std::optional<ChatTemplate> chat_template;
  RenderOptions options;
};

Renderer make_renderer(const Context& context) {
  const Arguments& arguments = context.arguments;
  Renderer renderer;
  std::string source;
  bool has_source = false;
  if (arguments.has(Flag::kModel) || !arguments.words().empty()) {
    const std::string path = only_model(arguments);
    const Tokenizer tokenizer = take(path, Tokenizer::open(path));
    renderer.options = render_options(tokenizer);
    renderer.subject = path;
    source = tokenizer.chat_template();
    has_source = true;
    if (source.empty() && !arguments.has(Flag::kChatTemplateFile)) {
      fail(ErrorCode::kNotFound, path, "has no chat template; give --chat-template-file FILE");
    }
  }
  if (arguments.has(Flag::kChatTemplateFile)) {
    renderer.subject = arguments.text(Flag::kChatTemplateFile);
    source = read_file(renderer.subject, InputLimit::kTemplate, context.interrupt);
    has_source = true;
  }
  if (has_source) {
    renderer.chat_template = take(renderer.subject, ChatTemplate::parse(std::move(source)));
  }
  if (arguments.has(Flag::kNow)) {
    renderer.options.now = parse_time(arguments.spelling(Flag::kNow), arguments.text(Flag::kNow));
  }
  return renderer;
}

// A request, or {"template", "vars"}: that text with exactly these variables.
std::string render_line(const Renderer& renderer, std::string_view line) {
  const std::optional<JsonMembers> members = json_members("line", line);
  const auto own = members ? member(*members, "template") : std::nullopt;
  if (own) {
    const Json source = Json::parse(*own);
    if (!source.is_string()) throw Error(ErrorCode::kInvalidArgument, "template is no string");
    RenderOptions options;
    options.now = renderer.options.now;
    const ChatTemplate chat_template = ChatTemplate::parse(source.get<std::string>()).value();
    const std::string_view variables = member(*members, "vars").value_or("{}");
    return chat_template.render_variables(variables, options).value().text();
  }
  if (!renderer.chat_template) {
    throw Error(ErrorCode::kNotFound, "no template: give MODEL or --chat-template-file FILE");
  }
  return renderer.chat_template->render(line, renderer.options).value().text();
}

int render_lines(Context& context, const Renderer& renderer) {
  int code = kExitOk;
  for_each_line(
      context.arguments.text(Flag::kJsonl), context.interrupt, [&](std::string_view line) {
        Json answer;
        try {
          answer = Json{{"text", render_line(renderer, line)}};
        } catch (const Error& error) {
          if (error.code() == ErrorCode::kCancelled) throw;
          answer = Json{{"error", valid_utf8(error.message())}};
          code = kExitFailed;
        }
        context.output.write(answer.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
      });
  return code;
}

}  // namespace

int template_command(Context& context) {
  const Arguments& arguments = context.arguments;
  const bool is_lines = arguments.has(Flag::kJsonl);
  if (is_lines == arguments.has(Flag::kMessagesJson)) {
    fail(ErrorCode::kUsage, "--messages-json",
         "give one of --messages-json FILE and --jsonl FILE (- is stdin)");
  }
  const bool has_template = arguments.has(Flag::kModel) || !arguments.words().empty() ||
                            arguments.has(Flag::kChatTemplateFile);
  if (!is_lines && !has_template) {
    fail(ErrorCode::kUsage, "MODEL", "give a model or --chat-template-file FILE");
  }
  print_settings(context);
  const Renderer renderer = make_renderer(context);
  if (is_lines) return render_lines(context, renderer);
  const std::string request =
      read_file(arguments.text(Flag::kMessagesJson), InputLimit::kJson, context.interrupt);
  const Result<RenderedChat> chat = renderer.chat_template->render(request, renderer.options);
  if (!chat.ok()) {
    // The request is wrong, or the template is, or does not want this request.
    const std::string path = arguments.text(Flag::kMessagesJson);
    const bool is_of_request = chat.error().code() == ErrorCode::kInvalidArgument;
    throw about(!is_of_request ? renderer.subject : path == "-" ? "stdin" : path, chat.error());
  }
  context.output.write(chat->text());
  return kExitOk;
}

}  // namespace tern::cli

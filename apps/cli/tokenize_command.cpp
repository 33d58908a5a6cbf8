// `tern tokenize`: text to token ids, and ids back to text.
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/chat.h"
#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/file_text.h"
#include "cli/json_text.h"
#include "cli/missing_bytes.h"
#include "cli/model_setup.h"
#include "cli/utf8_text.h"
#include "cli/values.h"
#include "tern/chat_template.h"
#include "tern/tokenizer.h"

namespace tern::cli {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::ordered_json;

ParseSpecial parse_special(std::string_view name) {
  if (name == "none") return ParseSpecial::kNone;
  return name == "defined" ? ParseSpecial::kDefined : ParseSpecial::kAll;
}

EncodeOptions encode_options(const Arguments& arguments) {
  EncodeOptions options;
  options.add_special = arguments.on(Flag::kBos) && arguments.on(Flag::kSpecial);
  options.parse_special = arguments.on(Flag::kSpecial)
                              ? parse_special(arguments.text(Flag::kParseSpecial))
                              : ParseSpecial::kNone;
  return options;
}

struct Decoded {
  std::string text;
  std::vector<std::string> chunks;
  std::string flush;
};

Decoded decode_stream(const Tokenizer& tokenizer, const Ids& ids, bool skip_special) {
  Decoded out;
  TokenStream stream = tokenizer.stream(skip_special);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Result<std::string> chunk = stream.push(ids[i]);
    if (!chunk.ok()) throw about(fmt::format("ids[{}]", i), chunk.error());
    out.text += chunk.value();
    out.chunks.push_back(std::move(chunk).value());
  }
  out.flush = stream.flush();
  out.text += out.flush;
  return out;
}

Json decoded_json(const Decoded& decoded) {
  return Json{{"text", decoded.text}, {"chunks", decoded.chunks}, {"flush", decoded.flush}};
}

// A piece that is no text by itself is given as its bytes.
Json piece_json(const std::string& piece) {
  if (find_invalid_utf8(piece) == std::string::npos) return piece;
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

// Writes a list that may be long: in pieces, and an interruption ends it.
class ListWriter {
 public:
  ListWriter(const Context& context, const std::string& subject)
      : context_(context), subject_(subject) {}

  void add(std::string_view text) {
    pending_ += text;
    constexpr std::size_t kPiece = std::size_t{1} << 16U;
    if (pending_.size() < kPiece) return;
    if (context_.interrupt.requested()) {
      throw Error(ErrorCode::kCancelled, subject_ + ": the tokens are not written to their end");
    }
    finish();
  }
  // Nothing the first time.
  std::string separator(std::string_view text) {
    if (std::exchange(is_begun_, true)) return std::string(text);
    return {};
  }
  void finish() {
    context_.output.write(pending_);
    pending_.clear();
  }

 private:
  const Context& context_;
  const std::string& subject_;
  std::string pending_;
  bool is_begun_ = false;
};

// One line of --jsonl to one answer.
class LineAnswerer {
 public:
  LineAnswerer(const Tokenizer& tokenizer, const EncodeOptions& defaults, CancelToken cancel)
      : tokenizer_(tokenizer), defaults_(defaults), cancel_(std::move(cancel)) {}

  Json answer(std::string_view line) {
    const std::optional<JsonMembers> members = json_members("line", line);
    if (!members) {
      const Json value = Json::parse(line);
      if (!value.is_string()) {
        throw Error(ErrorCode::kInvalidArgument, "a line is a string or an object");
      }
      return encoded(value.get<std::string>(), defaults_);
    }
    if (member(*members, "messages")) return chat(line);
    if (const auto ids = member(*members, "ids")) return decode(*members, *ids);
    if (const auto text = member(*members, "text")) return encode(*members, *text);
    throw Error(ErrorCode::kInvalidArgument, "an object needs text, ids or messages");
  }

 private:
  Json encoded(const std::string& text, const EncodeOptions& options) const {
    Ids ids = tokenizer_.encode(text, options, cancel_).value();
    warn_missing_bytes(tokenizer_, "line", text, ids);
    return Json{{"ids", std::move(ids)}};
  }

  Json encode(const JsonMembers& members, std::string_view text) const {
    const Json value = Json::parse(text);
    if (!value.is_string()) throw Error(ErrorCode::kInvalidArgument, "text is no string");
    EncodeOptions options = defaults_;
    if (const auto add = member(members, "add_special")) {
      options.add_special = boolean("add_special", *add);
    }
    if (const auto parse = member(members, "parse_special")) {
      const Json choice = Json::parse(*parse);
      if (choice.is_boolean()) {
        options.parse_special = choice.get<bool>() ? ParseSpecial::kAll : ParseSpecial::kNone;
      } else if (choice == "all" || choice == "defined" || choice == "none") {
        options.parse_special = parse_special(choice.get<std::string>());
      } else {
        throw Error(ErrorCode::kInvalidArgument,
                    "parse_special is none of all, defined, none, true, false");
      }
    }
    return encoded(value.get<std::string>(), options);
  }

  Json decode(const JsonMembers& members, std::string_view ids_text) const {
    const auto ids = parse_ids(ids_text);
    if (!ids || ids_text.front() != '[') {
      throw Error(ErrorCode::kInvalidArgument, "ids is no list of token ids");
    }
    bool skip = false;
    if (const auto given = member(members, "skip_special")) skip = boolean("skip_special", *given);
    return decoded_json(decode_stream(tokenizer_, *ids, skip));
  }

  Json chat(std::string_view request) {
    if (!template_) {
      if (tokenizer_.chat_template().empty()) {
        throw Error(ErrorCode::kNotFound, "the model has no chat template");
      }
      template_ = ChatTemplate::parse(tokenizer_.chat_template()).value();
      render_ = render_options(tokenizer_);
    }
    const RenderedChat chat = template_->render(request, render_).value();
    Ids ids = tokenizer_.encode_chat(chat.segments, cancel_).value();
    warn_missing_bytes(tokenizer_, "line", chat.text(), ids);
    return Json{{"ids", std::move(ids)}};
  }

  static bool boolean(std::string_view name, std::string_view text) {
    if (text != "true" && text != "false") {
      throw Error(ErrorCode::kInvalidArgument, std::string(name) + " is neither true nor false");
    }
    return text == "true";
  }

  const Tokenizer& tokenizer_;
  EncodeOptions defaults_;
  CancelToken cancel_;
  std::optional<ChatTemplate> template_;
  RenderOptions render_;
};

int answer_lines(Context& context, const Tokenizer& tokenizer) {
  const Arguments& arguments = context.arguments;
  LineAnswerer answerer(tokenizer, encode_options(arguments), context.interrupt.token());
  int code = kExitOk;
  for_each_line(arguments.text(Flag::kJsonl), context.interrupt, [&](std::string_view line) {
    Json answer;
    try {
      answer = answerer.answer(line);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled)
        throw about(context.arguments.text(Flag::kJsonl), error);
      answer = Json{{"error", valid_utf8(error.message())}};
      code = kExitFailed;
    }
    context.output.write(answer.dump() + "\n");
  });
  return code;
}

int decode(Context& context, const Tokenizer& tokenizer) {
  const Arguments& arguments = context.arguments;
  const bool is_file = arguments.has(Flag::kDecodeFile);
  const std::string subject =
      is_file ? arguments.text(Flag::kDecodeFile) : arguments.spelling(Flag::kDecode);
  const std::string text = is_file ? read_file(subject, InputLimit::kPrompt, context.interrupt)
                                   : arguments.text(Flag::kDecode);
  const auto ids = parse_ids(text);
  if (!ids) fail(ErrorCode::kInvalidArgument, subject, "is no list of token ids such as 504,3575");
  const bool skip_special = !arguments.on(Flag::kSpecial);
  if (arguments.on(Flag::kJson)) {
    try {
      const Decoded decoded = decode_stream(tokenizer, *ids, skip_special);
      context.output.write(decoded_json(decoded).dump() + "\n");
    } catch (const Error& error) {
      throw about(subject, error);
    }
  } else {
    context.output.write_text(take(subject, tokenizer.decode(*ids, skip_special)));
  }
  return kExitOk;
}

int encode(Context& context, const Tokenizer& tokenizer, const std::string& subject,
           const std::string& text) {
  const Arguments& arguments = context.arguments;
  const Ids ids =
      take(subject, tokenizer.encode(text, encode_options(arguments), context.interrupt.token()));
  warn_missing_bytes(tokenizer, subject, text, ids);
  if (arguments.on(Flag::kCount)) {
    context.output.write(fmt::format("{}\n", ids.size()));
    return kExitOk;
  }
  ListWriter list(context, subject);
  if (arguments.on(Flag::kIds)) {
    list.add("[");
    for (const std::int32_t id : ids) list.add(fmt::format("{}{}", list.separator(", "), id));
    list.add("]\n");
  } else if (arguments.on(Flag::kJson)) {
    list.add("{\"tokens\":[");
    for (const std::int32_t id : ids) {
      const Json token{{"id", id}, {"piece", piece_json(take(subject, tokenizer.piece(id)))}};
      list.add(list.separator(",") + token.dump());
    }
    list.add("]}\n");
  } else {
    for (const std::int32_t id : ids) {
      list.add(fmt::format("{:6}  {}\n", id, visible(take(subject, tokenizer.piece(id)), true)));
    }
  }
  list.finish();
  return kExitOk;
}

// At most one of the flags; the second that was given is named.
void at_most_one(const Arguments& arguments, std::initializer_list<Flag> flags) {
  const Flag* first = nullptr;
  for (const Flag& flag : flags) {
    const bool is_set =
        flag_row(flag).kind == ValueKind::kSwitch ? arguments.on(flag) : arguments.has(flag);
    if (!is_set) continue;
    if (first != nullptr) {
      fail(ErrorCode::kUsage, arguments.spelling(flag), "cannot be joined with {}",
           arguments.spelling(*first));
    }
    first = &flag;
  }
}

struct Text {
  std::string subject, bytes;
};

Text read_text(const Context& context) {
  const Arguments& arguments = context.arguments;
  if (arguments.has(Flag::kPrompt)) {
    const std::string text = arguments.text(Flag::kPrompt);
    return {arguments.spelling(Flag::kPrompt), arguments.on(Flag::kEscape) ? unescape(text) : text};
  }
  const std::string path = arguments.has(Flag::kFile) ? arguments.text(Flag::kFile) : "-";
  if (path == "-" && context.terminal.in_is_terminal) {
    fail(ErrorCode::kUsage, "text", "there is none: give -p TEXT, -f FILE, or a pipe");
  }
  return {path == "-" ? "stdin" : path, read_file(path, InputLimit::kPrompt, context.interrupt)};
}

}  // namespace

int tokenize_command(Context& context) {
  const Arguments& arguments = context.arguments;
  const std::string path = only_model(arguments);
  at_most_one(arguments,
              {Flag::kPrompt, Flag::kFile, Flag::kDecode, Flag::kDecodeFile, Flag::kJsonl});
  at_most_one(arguments, {Flag::kIds, Flag::kJson, Flag::kCount, Flag::kJsonl});
  const bool is_decode = arguments.has(Flag::kDecode) || arguments.has(Flag::kDecodeFile);
  if (is_decode) {
    at_most_one(arguments, {Flag::kDecode, Flag::kDecodeFile, Flag::kIds, Flag::kCount});
  }
  print_settings(context);
  Text text;
  if (!is_decode && !arguments.has(Flag::kJsonl)) text = read_text(context);
  const Tokenizer tokenizer = take(path, Tokenizer::open(path));
  print_warnings(tokenizer.warnings());
  if (arguments.has(Flag::kJsonl)) return answer_lines(context, tokenizer);
  if (is_decode) return decode(context, tokenizer);
  return encode(context, tokenizer, text.subject, text.bytes);
}

}  // namespace tern::cli

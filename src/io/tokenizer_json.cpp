// What a tokenizer.json means, in terms of text::TokenizerData.
#include "io/tokenizer_json.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/file_map.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "io/tokenizer_json_node.h"
#include "io/tokenizer_json_parse.h"
#include "text/pre_tokenizer.h"

namespace tern::io {
namespace {

constexpr std::string_view kTokenizerName = "tokenizer.json";
constexpr std::string_view kConfigName = "tokenizer_config.json";
constexpr std::string_view kGenerationName = "generation_config.json";
constexpr std::string_view kTemplateName = "chat_template.jinja";

template <class... Args>
Error bad(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidFile, "{}: {}", kTokenizerName,
              fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
Error unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kUnsupported, "{}: {}", kTokenizerName,
              fmt::format(format, std::forward<Args>(args)...));
}

std::string type_of(Node component) { return component["type"].shown(); }

// A true or false option; absent is `fallback`.
Result<bool> flag(Node object, const char* key, bool fallback, std::string_view where) {
  const Node value = object[key];
  if (!value.exists()) return fallback;
  if (const auto on = value.boolean()) return *on;
  return bad("{}: '{}' is not true or false", where, key);
}

// Components of a Sequence in order, or the component itself. As deep as the document.
void flatten(Node component, const char* list_key, std::vector<Node>& parts) {
  if (component["type"].is("Sequence") && component[list_key].is_list()) {
    for (const Node part : component[list_key].elements()) flatten(part, list_key, parts);
  } else if (component.exists()) {
    parts.push_back(component);
  }
}

class TokenizerJsonReader {
 public:
  explicit TokenizerJsonReader(TokenizerDocument document) : document_(std::move(document)) {}

  Result<text::TokenizerData> read(const TokenizerTexts& texts) {
    TERN_TRY(read_model());
    TERN_TRY(read_normalizer());
    TERN_TRY(read_pre_tokenizer());
    TERN_TRY(check_decoder());
    TERN_TRY(read_tokens());
    TERN_TRY(read_post_processor());
    data_.add_begin = data_.add_begin.value_or(false);
    TERN_TRY(read_config(texts.config));
    TERN_TRY(read_generation_config(texts.generation_config));
    if (texts.chat_template) data_.chat_template = *texts.chat_template;
    return std::move(data_);
  }

 private:
  [[nodiscard]] Node root() const { return document_.json; }

  Result<void> read_model();
  Result<void> read_normalizer();
  Result<void> read_pre_tokenizer();
  Result<std::string> describe_pre_tokenizer(Node component) const;
  Result<void> check_decoder() const;
  Result<void> read_tokens();
  Result<void> place_vocabulary(std::vector<std::int32_t>& entry_of);
  Result<text::AddedToken> read_added_token(Node entry) const;
  Result<void> read_post_processor();
  Result<void> read_template_processing(Node processor);
  Result<void> read_config(std::optional<std::string_view> text);
  Result<void> read_chat_template(Node value);
  Result<std::optional<std::int32_t>> config_token(Node config, const char* key) const;
  Result<void> read_generation_config(std::optional<std::string_view> text);

  TokenizerDocument document_;
  text::TokenizerData data_;
  text::StringIndex words_;  // of document_.vocabulary
  bool has_template_processing_ = false;
};

Result<void> TokenizerJsonReader::read_model() {
  const Node model = root()["model"];
  if (!model["type"].is("BPE")) {
    return unsupported("model type '{}' is not supported; BPE is", type_of(model));
  }
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                          "fuse_unk", "byte_fallback"}) {
    if (!model[key].is_off()) {
      return unsupported("model option '{}' is not supported ({})", key, model[key].shown());
    }
  }
  if (document_.vocabulary.empty()) return bad("model.vocab is missing or empty");
  if (!model["merges"].is_list()) return bad("model.merges is missing or not a list");
  TERN_ASSIGN(data_.whole_words, flag(model, "ignore_merges", false, "model"));
  return {};
}

Result<void> TokenizerJsonReader::read_normalizer() {
  std::vector<Node> parts;
  flatten(root()["normalizer"], "normalizers", parts);
  for (const Node part : parts) {
    if (!part["type"].is("NFC")) {
      return unsupported("normalizer '{}' is not supported; NFC is", type_of(part));
    }
  }
  data_.nfc = !parts.empty();
  return {};
}

// The component in the words of PreTokenizer::huggingface.
Result<std::string> TokenizerJsonReader::describe_pre_tokenizer(Node component) const {
  const std::string type = type_of(component);
  const std::string where = "pre_tokenizer " + type;
  if (type == "ByteLevel") {
    TERN_ASSIGN(const bool adds_space, flag(component, "add_prefix_space", true, where));
    if (adds_space) return unsupported("{} with add_prefix_space is not supported", where);
    TERN_ASSIGN(const bool use_regex, flag(component, "use_regex", true, where));
    return std::string(use_regex ? "ByteLevel(use_regex)" : "ByteLevel");
  }
  if (type == "Digits" && component["individual_digits"].is(true)) return type;
  if (type == "Split") {
    const std::string* pattern = component["pattern"]["Regex"].text();
    if (!component["behavior"].is("Isolated") || !component["invert"].is_off() ||
        pattern == nullptr) {
      return unsupported("{} is supported with a Regex, 'Isolated' and not inverted only", where);
    }
    return "Split(" + *pattern + ")";
  }
  return unsupported("{} is not supported with these options", where);
}

Result<void> TokenizerJsonReader::read_pre_tokenizer() {
  std::vector<Node> parts;
  flatten(root()["pre_tokenizer"], "pretokenizers", parts);
  if (parts.empty()) return unsupported("a tokenizer without pre_tokenizer is not supported");
  std::string description;
  for (const Node part : parts) {
    TERN_ASSIGN(const std::string words, describe_pre_tokenizer(part));
    description += (description.empty() ? "" : ", ") + words;
  }
  for (const text::PreTokenizer& pre : text::pre_tokenizers()) {
    if (!pre.huggingface.empty() && pre.huggingface == description) {
      data_.pre = pre.name;
      return {};
    }
  }
  return unsupported("pre_tokenizer {} is none of those that Tern knows",
                     escape_for_message(description));
}

Result<void> TokenizerJsonReader::check_decoder() const {
  std::vector<Node> parts;
  flatten(root()["decoder"], "decoders", parts);
  if (parts.size() == 1 && parts[0]["type"].is("ByteLevel")) return {};
  return unsupported("decoder '{}' is not supported; ByteLevel is", type_of(root()["decoder"]));
}

// Which entry of the vocabulary has an id; -1: none.
Result<void> TokenizerJsonReader::place_vocabulary(std::vector<std::int32_t>& entry_of) {
  for (std::size_t i = 0; i < document_.ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(document_.ids[i]);
    if (id >= entry_of.size()) entry_of.resize(id + 1, -1);
    if (entry_of[id] >= 0) {
      return bad("tokens '{}' and '{}' both have the id {}",
                 escape_for_message(document_.vocabulary[static_cast<std::size_t>(entry_of[id])]),
                 escape_for_message(document_.vocabulary[i]), id);
    }
    entry_of[id] = static_cast<std::int32_t>(i);
  }
  std::vector<std::int32_t> entries(document_.ids.size());
  std::iota(entries.begin(), entries.end(), 0);
  words_ = text::StringIndex(document_.vocabulary, entries);
  if (const auto again = words_.first_duplicate()) {
    const auto i = static_cast<std::size_t>(*again);
    return bad("token '{}' is given twice, with the id {} too",
               escape_for_message(document_.vocabulary[i]), document_.ids[i]);
  }
  return {};
}

Result<text::AddedToken> TokenizerJsonReader::read_added_token(Node entry) const {
  text::AddedToken token;
  const std::string* content = entry["content"].text();
  if (content == nullptr) return bad("an entry of added_tokens has no content");
  token.content = *content;
  const std::string where = "added token '" + escape_for_message(*content) + "'";
  const auto id = entry["id"].id_below(limits::kVocabulary);
  if (!id) {
    return bad("{} has the id {}; ids are numbers from 0 to {}", where, entry["id"].shown(),
               limits::kVocabulary - 1);
  }
  token.id = *id;
  if (token.content.empty()) return bad("added token {} has an empty content", token.id);
  TERN_ASSIGN(token.special, flag(entry, "special", false, where));
  TERN_ASSIGN(token.strips_left, flag(entry, "lstrip", false, where));
  TERN_ASSIGN(token.strips_right, flag(entry, "rstrip", false, where));
  TERN_ASSIGN(token.normalized, flag(entry, "normalized", !token.special, where));
  TERN_ASSIGN(const bool single_word, flag(entry, "single_word", false, where));
  if (single_word) return unsupported("{}: 'single_word' is not supported", where);
  const auto word = words_.find(document_.vocabulary, token.content);
  if (word && document_.ids[static_cast<std::size_t>(*word)] != token.id) {
    return bad("{} has the id {}, but {} in model.vocab", where, token.id,
               document_.ids[static_cast<std::size_t>(*word)]);
  }
  return token;
}

Result<void> TokenizerJsonReader::read_tokens() {
  std::vector<std::int32_t> entry_of;
  TERN_TRY(place_vocabulary(entry_of));
  const Node list = root()["added_tokens"];
  if (list.exists() && !list.is_list()) return bad("added_tokens is not a list");
  std::vector<std::int32_t> added_of;  // the added token with an id; -1: none
  for (const Node entry : list.elements()) {
    TERN_ASSIGN(text::AddedToken token, read_added_token(entry));
    const auto id = static_cast<std::size_t>(token.id);
    if (id >= added_of.size()) added_of.resize(id + 1, -1);
    const std::string_view other =
        added_of[id] >= 0
            ? std::string_view(data_.added[static_cast<std::size_t>(added_of[id])].content)
        : id < entry_of.size() && entry_of[id] >= 0
            ? document_.vocabulary[static_cast<std::size_t>(entry_of[id])]
            : std::string_view(token.content);
    if (added_of[id] >= 0 || other != token.content) {
      return bad("tokens '{}' and '{}' both have the id {}", escape_for_message(other),
                 escape_for_message(token.content), id);
    }
    added_of[id] = static_cast<std::int32_t>(data_.added.size());
    data_.added.push_back(std::move(token));
  }
  const std::size_t count = std::max(entry_of.size(), added_of.size());
  data_.types.reserve(count);
  for (std::size_t id = 0; id < count; ++id) {
    if (id < added_of.size() && added_of[id] >= 0) {
      const text::AddedToken& token = data_.added[static_cast<std::size_t>(added_of[id])];
      data_.tokens.add(token.content);
      data_.types.push_back(token.special ? text::TokenType::kControl
                                          : text::TokenType::kUserDefined);
    } else if (id < entry_of.size() && entry_of[id] >= 0) {
      data_.tokens.add(document_.vocabulary[static_cast<std::size_t>(entry_of[id])]);
      data_.types.push_back(text::TokenType::kNormal);
    } else {
      data_.tokens.add("");
      data_.types.push_back(text::TokenType::kUnused);
    }
  }
  data_.merges = std::move(document_.merges);
  return {};
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens":
//  {"<s>": {"ids": [1]}}}: one token before the text, one behind it, or both.
Result<void> TokenizerJsonReader::read_template_processing(Node processor) {
  has_template_processing_ = true;
  data_.add_begin = false;
  bool text_seen = false;
  if (!processor["single"].is_list()) {
    return bad("post_processor TemplateProcessing has no list 'single'");
  }
  for (const Node part : processor["single"].elements()) {
    if (part["Sequence"].exists()) {
      text_seen = true;
      continue;
    }
    const std::string* name = part["SpecialToken"]["id"].text();
    if (name == nullptr) {
      return bad("post_processor TemplateProcessing: unknown part {}", part.shown());
    }
    const std::vector<Node> ids = processor["special_tokens"][*name]["ids"].elements();
    const auto id = ids.size() == 1 ? ids[0].id_below(data_.tokens.size()) : std::nullopt;
    if (!id) {
      return bad("post_processor TemplateProcessing: '{}' has no id of a token",
                 escape_for_message(*name));
    }
    std::optional<std::int32_t>& place = text_seen ? data_.end_id : data_.begin_id;
    if (place) {
      return unsupported("post_processor TemplateProcessing with two tokens on one side");
    }
    place = id;
    (text_seen ? data_.add_end : *data_.add_begin) = true;
  }
  return {};
}

Result<void> TokenizerJsonReader::read_post_processor() {
  std::vector<Node> parts;
  flatten(root()["post_processor"], "processors", parts);
  for (const Node part : parts) {
    if (part["type"].is("ByteLevel")) continue;  // concerns offsets only
    if (!part["type"].is("TemplateProcessing") || has_template_processing_) {
      return unsupported("post_processor '{}' is not supported", type_of(part));
    }
    TERN_TRY(read_template_processing(part));
  }
  return {};
}

// A token's text, as a string or as {"content": ...}; nothing when it is null or absent.
Result<std::optional<std::int32_t>> TokenizerJsonReader::config_token(Node config,
                                                                      const char* key) const {
  const Node value = config[key];
  if (!value.exists()) return std::optional<std::int32_t>();
  const std::string* text = value["content"].exists() ? value["content"].text() : value.text();
  if (text == nullptr) {
    return fail(ErrorCode::kInvalidFile, "{}: '{}' is not the text of a token", kConfigName, key);
  }
  for (const text::AddedToken& token : data_.added) {
    if (token.content == *text) return std::optional(token.id);
  }
  for (std::size_t id = 0; id < data_.tokens.size(); ++id) {
    if (data_.tokens[id] == *text) return std::optional(static_cast<std::int32_t>(id));
  }
  return fail(ErrorCode::kInvalidFile, "{}: '{}' is '{}', which is no token", kConfigName, key,
              escape_for_message(*text));
}

Result<void> TokenizerJsonReader::read_chat_template(Node value) {
  if (!value.exists()) return {};
  if (const std::string* source = value.text()) {
    data_.chat_template = *source;
    return {};
  }
  // Several with names: the one called "default".
  for (const Node entry : value.elements()) {
    const std::string* source = entry["template"].text();
    if (entry["name"].is("default") && source != nullptr) {
      data_.chat_template = *source;
      return {};
    }
  }
  return fail(ErrorCode::kInvalidFile,
              "{}: 'chat_template' is neither a text nor a list with one named 'default'",
              kConfigName);
}

Result<void> TokenizerJsonReader::read_config(std::optional<std::string_view> text) {
  if (!text) return {};
  TERN_ASSIGN(const TokenizerDocument document, parse_tokenizer_document(*text, kConfigName));
  const Node config = document.json;
  TERN_ASSIGN(const auto begin, config_token(config, "bos_token"));
  TERN_ASSIGN(const auto end, config_token(config, "eos_token"));
  TERN_ASSIGN(data_.padding_id, config_token(config, "pad_token"));
  TERN_ASSIGN(data_.unknown_id, config_token(config, "unk_token"));
  TERN_TRY(read_chat_template(config["chat_template"]));
  if (data_.add_end && end && *end != *data_.end_id) {
    // The post-processor says what stands behind a text, the configuration what ends an answer.
    return unsupported("post_processor ends a text with token {}, but eos_token is {}",
                       *data_.end_id, *end);
  }
  if (!data_.begin_id) data_.begin_id = begin;
  if (!data_.end_id) data_.end_id = end;
  if (has_template_processing_) return {};
  TERN_ASSIGN(const bool adds_begin, flag(config, "add_bos_token", false, kConfigName));
  TERN_ASSIGN(const bool adds_end, flag(config, "add_eos_token", false, kConfigName));
  data_.add_begin = adds_begin && data_.begin_id;
  data_.add_end = adds_end && data_.end_id;
  return {};
}

Result<void> TokenizerJsonReader::read_generation_config(std::optional<std::string_view> text) {
  if (!text) return {};
  TERN_ASSIGN(const TokenizerDocument document, parse_tokenizer_document(*text, kGenerationName));
  const Node value = Node(document.json)["eos_token_id"];
  const std::vector<Node> list = value.is_list() ? value.elements() : std::vector{value};
  if (!value.exists()) return {};
  for (const Node entry : list) {
    const auto id = entry.id_below(data_.tokens.size());
    if (!id) {
      return fail(ErrorCode::kInvalidFile,
                  "{}: eos_token_id has the id {}, but ids go from 0 to {}", kGenerationName,
                  entry.shown(), data_.tokens.size() - 1);
    }
    data_.more_end_ids.push_back(*id);
  }
  return {};
}

std::string_view text_of(const FileMap& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

Result<text::TokenizerData> parse_tokenizer_json(const TokenizerTexts& texts) {
  TERN_ASSIGN(TokenizerDocument document,
              parse_tokenizer_document(texts.tokenizer, kTokenizerName));
  return TokenizerJsonReader(std::move(document)).read(texts);
}

Result<text::TokenizerData> read_tokenizer_json(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path folder = is_folder ? path : path.parent_path();
  TERN_ASSIGN(const FileMap tokenizer, FileMap::open(is_folder ? folder / kTokenizerName : path));
  TokenizerTexts texts{
      .tokenizer = text_of(tokenizer), .config = {}, .generation_config = {}, .chat_template = {}};
  std::vector<FileMap> others;  // hold the texts until they are parsed
  for (const auto& [name, text] :
       {std::pair{kConfigName, &texts.config}, std::pair{kGenerationName, &texts.generation_config},
        std::pair{kTemplateName, &texts.chat_template}}) {
    const std::filesystem::path file = folder / name;
    if (!std::filesystem::exists(file, ignored)) continue;
    TERN_ASSIGN(FileMap opened, FileMap::open(file));
    others.push_back(std::move(opened));
    *text = text_of(others.back());
  }
  auto data = parse_tokenizer_json(texts);
  if (tokenizer.damaged()) return tokenizer.damage_error();
  for (const FileMap& file : others) {
    if (file.damaged()) return file.damage_error();
  }
  return data;
}

}  // namespace tern::io

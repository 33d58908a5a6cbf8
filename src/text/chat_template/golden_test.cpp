// Published chat templates and one-line programs against what Hugging Face makes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "text/chat_template/chat_template.h"
#include "text/chat_template/test_support.h"

namespace tern::text::jinja {
namespace {

const std::string kFolder = std::string(TERN_SOURCE_DIR) + "/tests/golden/templates/";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

const Value* field(const Value& object, std::string_view name) {
  const Value* found = object.dict().dict.find(name);
  return found != nullptr && found->is_none() ? nullptr : found;
}

Value field_or_none(const Value& object, std::string_view name) {
  const Value* found = field(object, name);
  return found != nullptr ? *found : Value::none();
}

bool flag(const Value& object, std::string_view name) {
  const Value* found = field(object, name);
  return found != nullptr && found->as_bool();
}

std::string text_field(const Value& object, std::string_view name) {
  const Value* found = field(object, name);
  return found != nullptr ? std::string(found->text()) : std::string();
}

std::optional<std::string> token(const Value& object, std::string_view name) {
  const Value* found = field(object, name);
  if (found == nullptr) return std::nullopt;
  return std::string(found->text());
}

ChatRequest request_of(const Value& entry) {
  ChatRequest request;
  request.messages = *field(entry, "messages");
  request.tools = field_or_none(entry, "tools");
  request.documents = field_or_none(entry, "documents");
  request.kwargs = field_or_none(entry, "kwargs");
  request.add_generation_prompt = flag(entry, "add_generation_prompt");
  request.continue_final_message = flag(entry, "continue_final_message");
  request.bos_token = token(entry, "bos_token");
  request.eos_token = token(entry, "eos_token");
  request.raw = flag(entry, "raw");
  request.now = kFixedClock;
  return request;
}

// Empty when the case comes out right, else what is wrong.
std::string check(const ChatTemplate& chat, const Value& entry) {
  const auto result = chat.render(request_of(entry));
  const Value* error = field(entry, "error");
  if (error == nullptr) {
    if (!result.ok()) return "unexpected error: " + result.error().message();
    const std::string text = result->text();
    const std::string wanted = text_field(entry, "expected");
    if (text == wanted) return "";
    const auto at =
        std::mismatch(text.begin(), text.end(), wanted.begin(), wanted.end()).first - text.begin();
    const auto from = static_cast<std::size_t>(std::max<std::ptrdiff_t>(at - 40, 0));
    return "differs at byte " + std::to_string(at) + ":\n  got    " + text.substr(from, 120) +
           "\n  wanted " + wanted.substr(std::min(from, wanted.size()), 120);
  }
  const std::string kind = text_field(*error, "kind");
  if (result.ok()) return "rendered, but must fail: " + kind;
  const std::string message = result.error().message();
  if (kind == "request") {
    const bool right = result.error().code() == ErrorCode::kInvalidArgument;
    return right ? "" : "a request error was taken for the template's: " + message;
  }
  if (result.error().code() != ErrorCode::kTemplate) return "wrong code: " + message;
  if (kind == "raised") {
    const std::string wanted = text_field(*error, "message");
    return message == wanted ? "" : "raised '" + message + "', wanted '" + wanted + "'";
  }
  return message.starts_with("chat template, line ") ? "" : "names no line: " + message;
}

TEST(ChatTemplateGoldens, RenderExactlyAsHuggingFace) {
  std::size_t templates = 0;
  std::size_t cases = 0;
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(kFolder + "expected")) {
    files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    const std::string name = path.stem().string();
    const auto chat = ChatTemplate::parse(read_file(kFolder + name + ".jinja"));
    ASSERT_TRUE(chat.ok()) << name << ": " << chat.error().message();
    const auto entries = value_from_json(read_file(path.string()));
    ASSERT_TRUE(entries.ok()) << name << ": " << entries.error().message();
    std::size_t right = 0;
    for (const Value& entry : entries->items()) {
      const std::string problem = check(*chat, entry);
      EXPECT_EQ(problem, "") << name << " / " << text_field(entry, "name");
      right += problem.empty() ? 1 : 0;
    }
    std::cout << name << ": " << right << " of " << entries->items().size() << "\n";
    ++templates;
    cases += entries->items().size();
  }
  // 27 published templates, 2,117 cases, and the template of SmolLM2 with 16.
  EXPECT_EQ(templates, 28u);
  EXPECT_EQ(cases, 2133u);
}

std::optional<FaultKind> kind_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, FaultKind>, 12> kKinds = {{
      {"syntax", FaultKind::kSyntax},
      {"raised", FaultKind::kRaised},
      {"undefined", FaultKind::kUndefined},
      {"type", FaultKind::kType},
      {"value", FaultKind::kValue},
      {"security", FaultKind::kSecurity},
      {"runtime", FaultKind::kRuntime},
      {"recursion", FaultKind::kRecursion},
      {"zero_division", FaultKind::kZeroDivision},
      {"overflow", FaultKind::kOverflow},
      {"index", FaultKind::kIndex},
      {"filter_argument", FaultKind::kFilterArgument},
  }};
  for (const auto& [kind, fault] : kKinds) {
    if (kind == name) return fault;
  }
  return std::nullopt;
}

// Programs that Tern answers otherwise, by decision. Each of them must go on to differ.
struct Exception {
  std::string_view id;
  std::string_view reason;
};
constexpr std::array kExceptions = {
    Exception{"print.bigint", "2 ** 64: calculating beyond 64 bits is an error"},
    Exception{"include", "refused when the template is loaded, not when it is reached"},
};

std::string check_program(const Value& program) {
  const Outcome outcome = run(text_field(program, "template"), *field(program, "vars"));
  const Value* kind = field(program, "error_kind");
  if (kind == nullptr) {
    if (outcome.fault) return "unexpected fault: " + outcome.message;
    const std::string wanted = text_field(program, "expected");
    return outcome.text == wanted ? "" : "got '" + outcome.text + "', wanted '" + wanted + "'";
  }
  if (!outcome.fault) return "rendered '" + outcome.text + "', but must fail";
  if (outcome.fault != kind_of(kind->text())) {
    return "another fault than " + std::string(kind->text()) + ": " + outcome.message;
  }
  if (outcome.fault == FaultKind::kRaised && outcome.message != text_field(program, "message")) {
    return "raised '" + outcome.message + "'";
  }
  return "";
}

TEST(ChatTemplateGoldens, MicroProgramsGiveTheSameTextOrTheSameKindOfFault) {
  const auto programs = value_from_json(read_file(kFolder + "micro.json"));
  ASSERT_TRUE(programs.ok());
  std::size_t core = 0;
  std::size_t full = 0;
  std::size_t exceptions = 0;
  for (const Value& program : programs->items()) {
    const std::string id = text_field(program, "id");
    const std::string problem = check_program(program);
    const bool is_exception = std::any_of(kExceptions.begin(), kExceptions.end(),
                                          [&](const Exception& e) { return e.id == id; });
    if (is_exception) {
      ++exceptions;
      EXPECT_NE(problem, "") << id << " is right now: take it out of the exceptions";
      continue;
    }
    EXPECT_EQ(problem, "") << id << ": " << text_field(program, "template").substr(0, 200);
    (text_field(program, "tier") == "core" ? core : full) += problem.empty() ? 1 : 0;
  }
  std::cout << "core " << core << ", full " << full << ", by decision otherwise " << exceptions
            << "\n";
  EXPECT_EQ(programs->items().size(), 256u);
  EXPECT_EQ(exceptions, kExceptions.size());
}

// Random programs made by tools/goldens/make_template_programs.py.
TEST(ChatTemplateGoldens, GeneratedProgramsGiveTheSameTextOrBothFail) {
  const auto file = value_from_json(read_file(kFolder + "generated.json"));
  ASSERT_TRUE(file.ok()) << file.error().message();
  const Dict& variables = field(*file, "variables")->dict().dict;
  const Value* programs = field(*file, "programs");
  std::size_t texts = 0;
  std::size_t faults = 0;
  std::size_t same_kind = 0;
  for (const Value& program : programs->items()) {
    Dict given;
    for (const Value& name : field(program, "vars")->items()) {
      given.set(name, *variables.find(name.text()), nullptr);
    }
    const Outcome outcome = run(text_field(program, "template"), make_dict(std::move(given)));
    const std::string place = text_field(program, "id") + ": " + text_field(program, "template");
    EXPECT_EQ(outcome.live_bytes, 0u) << place;
    if (const Value* kind = field(program, "error_kind")) {
      EXPECT_TRUE(outcome.fault.has_value()) << place << "\nrendered " << outcome.text;
      ++faults;
      same_kind += outcome.fault == kind_of(kind->text()) ? 1 : 0;
      continue;
    }
    EXPECT_FALSE(outcome.fault.has_value()) << place << "\n" << outcome.message;
    EXPECT_EQ(outcome.text, text_field(program, "expected")) << place;
    ++texts;
  }
  std::cout << texts << " texts, " << faults << " faults, " << same_kind
            << " of them of the same kind\n";
  EXPECT_EQ(texts + faults, 2000u);
}

}  // namespace
}  // namespace tern::text::jinja

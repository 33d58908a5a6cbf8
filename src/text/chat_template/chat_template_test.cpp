// Preparing, continuing and refusing conversations; the clock; JSON.
#include "text/chat_template/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <thread>

#include "base/own_stack.h"
#include "text/chat_template/test_support.h"

namespace tern::text {
namespace {

using testing::HasSubstr;

constexpr std::string_view kPlain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

ChatTemplate parsed(std::string_view source) { return ChatTemplate::parse(source).value(); }

ChatRequest request_of(std::string_view messages) {
  ChatRequest request;
  request.messages = value_from_json(messages).value();
  request.now = jinja::kFixedClock;
  return request;
}

TEST(ChatTemplate, RendersAndAsksForAnAnswer) {
  ChatRequest request = request_of(R"([{"role": "user", "content": "hi"}])");
  EXPECT_EQ(parsed(kPlain).render(request)->text(), "<user>hi</><assistant>");
  request.add_generation_prompt = false;
  EXPECT_EQ(parsed(kPlain).render(request)->text(), "<user>hi</>");
}

TEST(ChatTemplate, TheDeepestProgramsFitASmallStackOfTheCaller) {
  const std::string open(100, '[');
  const std::string close(100, ']');
  const std::string wide =
      "{% macro x() %}{{ " + open + "x()" + close + " }}{% endmacro %}{{ x() }}";
  std::string nested = "{{ " + std::string(126, '(') + "1" + std::string(126, ')') + " }}";
  Result<RenderedPrompt> refused = RenderedPrompt{};
  Result<RenderedPrompt> accepted = RenderedPrompt{};
  run_on_own_stack(std::size_t{256} << 10, [&] {
    const ChatRequest request = request_of(R"([{"role": "user", "content": "hi"}])");
    refused = parsed(wide).render(request);
    accepted = parsed(nested).render(request);
  });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kTemplate);
  EXPECT_EQ(accepted->text(), "1");
}

TEST(ChatTemplate, NullFieldsAreDroppedUnlessRaw) {
  ChatRequest request = request_of(R"([{"role": "user", "content": null, "x": {"y": null}}])");
  const ChatTemplate chat = parsed(
      "{{ messages[0].content is defined }} {{ messages[0].x.y is none }} {{ tools is none }}");
  EXPECT_EQ(chat.render(request)->text(), "False True True");
  request.raw = true;
  EXPECT_EQ(chat.render(request)->text(), "True True True");
}

TEST(ChatTemplate, ThoughtsGetAllTheirNames) {
  const ChatTemplate chat = parsed("{{ messages[0] }}");
  EXPECT_EQ(chat.render(request_of(R"([{"role": "a", "reasoning": "r"}])"))->text(),
            "{'thinking': 'r', 'role': 'a', 'reasoning': 'r', 'reasoning_content': 'r'}");
  EXPECT_EQ(
      chat.render(request_of(R"([{"role": "a", "thinking": "t", "reasoning": "r"}])"))->text(),
      "{'thinking': 't', 'role': 'a', 'reasoning': 'r', 'reasoning_content': 't'}");
  EXPECT_EQ(chat.render(request_of(R"([{"reasoning_content": "c", "thinking": "t", "role": "a"}])"))
                ->text(),
            "{'thinking': 't', 'reasoning_content': 'c', 'role': 'a'}");
}

TEST(ChatTemplate, ContinuesTheLastMessage) {
  ChatRequest request =
      request_of(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "The "}])");
  request.continue_final_message = true;
  request.add_generation_prompt = false;
  EXPECT_EQ(parsed(kPlain).render(request)->text(), "<user>a</><assistant>The ");
  // A template that trims takes the white space at the end along.
  EXPECT_EQ(
      parsed("{% for m in messages %}<{{ m.content|trim }}>{% endfor %}").render(request)->text(),
      "<a><The");
  request.messages =
      value_from_json(
          R"([{"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "image"}]}])")
          .value();
  EXPECT_EQ(parsed("{% for p in messages[0].content %}({{ p.text }}){% endfor %}")
                .render(request)
                ->text(),
            "(x");
}

TEST(ChatTemplate, RefusesWhatCannotBeContinued) {
  ChatRequest request = request_of(R"([{"role": "assistant", "content": "x"}])");
  request.continue_final_message = true;
  EXPECT_EQ(parsed(kPlain).render(request).error().code(), ErrorCode::kInvalidArgument);
  request.add_generation_prompt = false;
  EXPECT_THAT(parsed("content").render(request).error().message(), HasSubstr("does not appear"));
  EXPECT_THAT(parsed("{{ 1 }}").render(request).error().message(),
              HasSubstr("reads no \"content\""));
  request.messages = value_from_json(R"([{"role": "assistant"}])").value();
  EXPECT_THAT(parsed(kPlain).render(request).error().message(), HasSubstr("has no \"content\""));
  request.messages = value_from_json(R"([{"role": "a", "content": [{"type": "image"}]}])").value();
  EXPECT_THAT(parsed(kPlain).render(request).error().message(),
              HasSubstr("could not find any text"));
}

TEST(ChatTemplate, RefusesAKeyThatComesTwiceInARequest) {
  const auto message = [](std::string_view json) {
    const auto value = value_from_json(json);
    return value.ok() ? std::string("taken") : value.error().message();
  };
  EXPECT_EQ(message(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]})"), "taken");
  EXPECT_EQ(message(R"({"a": 1, "a": 2})"), "JSON: the key \"a\" comes a second time, at byte 9");
  EXPECT_THAT(message(R"([{"x": {"\\\"": "\\\"", "y": 1, "\u005c\"": 2}}])"),
              HasSubstr("at byte 32"));
}

TEST(ChatTemplate, RefusesRequestsThatAreNoConversation) {
  const ChatTemplate chat = parsed(kPlain);
  EXPECT_THAT(chat.render(request_of("[]")).error().message(), HasSubstr("empty conversation"));
  EXPECT_THAT(chat.render(request_of("{}")).error().message(),
              HasSubstr("messages is a list, not an object"));
  EXPECT_THAT(chat.render(request_of("[1]")).error().message(),
              HasSubstr("message 0 is an object, not a number"));
  ChatRequest request = request_of(R"([{"role": "user", "content": "hi"}])");
  request.kwargs = value_from_json(R"({"messages": []})").value();
  EXPECT_THAT(chat.render(request).error().message(), HasSubstr("may not set 'messages'"));
  request.kwargs = Value::integer(1);
  EXPECT_EQ(chat.render(request).error().code(), ErrorCode::kInvalidArgument);
}

TEST(ChatTemplate, RaisedMessagesComeThroughWordForWord) {
  const ChatTemplate chat = parsed("\n{{ raise_exception('Nope: ' ~ messages[0].role ~ '\\n!') }}");
  const auto result = chat.render(request_of(R"([{"role": "user"}])"));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kTemplate);
  EXPECT_EQ(result.error().message(), "Nope: user\n!");
}

TEST(ChatTemplate, OtherErrorsNameTheirLine) {
  const ChatTemplate chat = parsed("a\nb\n{{ messages[0].content + 1 }}");
  EXPECT_EQ(chat.render(request_of(R"([{"content": "x"}])")).error().message(),
            "chat template, line 3: can only concatenate str (not \"int\") to str");
}

TEST(ChatTemplate, VariablesOverrideModelTokens) {
  ChatRequest request = request_of(R"([{"role": "user"}])");
  request.bos_token = "<s>";
  request.kwargs = value_from_json(R"({"bos_token": "B", "think": false})").value();
  EXPECT_EQ(parsed("{{ bos_token }}{{ think }}{{ eos_token is defined }}").render(request)->text(),
            "BFalseFalse");
}

TEST(ChatTemplate, OneTemplateServesManyThreads) {
  const ChatTemplate chat = parsed(
      "{% macro m(x) %}{{ x|upper }}{% endmacro %}{% for m2 in messages %}{{ m(m2.content) }}"
      "{% endfor %}");
  const ChatRequest request = request_of(R"([{"content": "a"}, {"content": "b"}])");
  std::vector<int> right(4, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < right.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int k = 0; k < 200; ++k) right[i] += chat.render(request)->text() == "AB" ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(right, std::vector<int>(4, 200));
}

TEST(ChatTemplateClock, FormatsAsPythonDoes) {
  const auto at = [](const Clock& clock, std::string_view format) {
    return jinja::format_time(clock, format);
  };
  const Clock friday{2026, 1, 2, 3, 4, 5};
  EXPECT_EQ(at(friday, "%Y-%m-%d %H:%M:%S %A %B %a %b %p %I"),
            "2026-01-02 03:04:05 Friday January Fri Jan AM 03");
  EXPECT_EQ(at(friday, "%j %U %W %u %w %V %G %y %C %e %-d %-m %D %F %T %R %%"),
            "002 00 00 5 5 01 2026 26 20  2 2 1 01/02/26 2026-01-02 03:04:05 03:04 %");
  EXPECT_EQ(at(friday, "%c|%x|%X|%z|%f"), "Fri Jan  2 03:04:05 2026|01/02/26|03:04:05||000000");
  EXPECT_EQ(at(Clock{2021, 1, 3, 12, 0, 0}, "%V %G %U %W %p %I %w"), "53 2020 01 00 PM 12 0");
  EXPECT_EQ(at(Clock{2024, 12, 30, 23, 59, 59}, "%V %G %j"), "01 2025 365");
  EXPECT_EQ(at(friday, "a%"), "a%");
}

TEST(ChatTemplateClock, NowIsInUtc) {
  ASSERT_EQ(setenv("TZ", "TST-11", 1), 0);  // eleven hours east
  tzset();
  const std::time_t before = std::time(nullptr);
  const Clock now = Clock::now();
  const std::time_t after = std::time(nullptr);
  unsetenv("TZ");
  tzset();
  std::tm t{};
  t.tm_year = now.year - 1900;
  t.tm_mon = now.month - 1;
  t.tm_mday = now.day;
  t.tm_hour = now.hour;
  t.tm_min = now.minute;
  t.tm_sec = now.second;
  const std::time_t seconds = timegm(&t);
  EXPECT_GE(seconds, before);
  EXPECT_LE(seconds, after);
}

TEST(ChatTemplateJson, KeepsOrderAndNumbers) {
  EXPECT_EQ(jinja::run_json("{{ v|tojson }}",
                            R"({"v": {"z": 1, "a": [1.0, -0.0, 1e300, 18446744073709551615,
                                -9223372036854775808, 123456789012345678901234567890], "b": 2}})")
                .text,
            R"({"z": 1, "a": [1.0, -0.0, 1e+300, 18446744073709551615, -9223372036854775808, )"
            R"(123456789012345678901234567890], "b": 2})");
}

TEST(ChatTemplateJson, RefusesWhatIsNotStrict) {
  for (const std::string& text :
       {std::string("{"), std::string("[1,]"), std::string("NaN"), std::string("1 2"),
        std::string(R"("\ud800")"), std::string("\"\xff\""), std::string("1e999"), std::string(),
        std::string(65, '[') + std::string(65, ']'), std::string(10000, '[')}) {
    EXPECT_FALSE(value_from_json(text).ok()) << text.substr(0, 20);
  }
  EXPECT_TRUE(value_from_json(std::string(64, '[') + std::string(64, ']')).ok());
  EXPECT_THAT(value_from_json("[1, x]").error().message(), HasSubstr("byte 5"));
}

}  // namespace
}  // namespace tern::text

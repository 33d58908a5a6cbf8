// Which characters of a prompt the template wrote, and which came from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_template/test_support.h"

namespace tern::text {
namespace {

// The rendered text with what came from outside in brackets.
std::string marked(std::string_view source, std::string_view json) {
  const auto chat = ChatTemplate::parse(source);
  if (!chat.ok()) return chat.error().message();
  const auto prompt = chat->render_with(value_from_json(json).value(), jinja::kFixedClock);
  if (!prompt.ok()) return prompt.error().message();
  std::string text;
  for (const Segment& segment : prompt->segments) {
    text += segment.from_template ? segment.text : "[" + segment.text + "]";
  }
  return text;
}

TEST(TextOrigin, MessagesAreDataAndTheTemplateIsNot) {
  EXPECT_EQ(marked("<s>{{ m.role }}\n{{ m.content }}</s>",
                   R"({"m": {"role": "user", "content": "</s>hi"}})"),
            "<s>[user]\n[</s>hi]</s>");
}

TEST(TextOrigin, SurvivesConcatenation) {
  EXPECT_EQ(marked("{{ '<s>' + a + '</s>' }}{{ '<' ~ a ~ 1 ~ '>' }}", R"({"a": "x"})"),
            "<s>[x]</s><[x]1>");
  EXPECT_EQ(marked("{{ ('<' + a) * 2 }}", R"({"a": "x"})"), "<[x]<[x]");
}

TEST(TextOrigin, SurvivesSlicesAndTrimming) {
  EXPECT_EQ(marked("{% set t = 'ab' ~ a ~ 'cd' %}{{ t[1:5] }}|{{ t[::-1] }}|{{ t[2] }}",
                   R"({"a": "xyz"})"),
            "b[xyz]|dc[zyx]ba|[x]");
  EXPECT_EQ(marked("{{ (' ' ~ a ~ ' ')|trim }}{{ (' ' ~ a).strip() }}", R"({"a": " x "})"), "[xx]");
}

TEST(TextOrigin, SurvivesSplittingAndJoining) {
  EXPECT_EQ(marked("{% for p in ('a,' ~ d).split(',') %}({{ p }}){% endfor %}", R"({"d": "b,c"})"),
            "(a)([b])([c])");
  EXPECT_EQ(marked("{{ ['a', d, 'c']|join('<>') }}{{ '-'.join([d, d]) }}", R"({"d": "x"})"),
            "a<>[x]<>c[x]-[x]");
  EXPECT_EQ(marked("{{ d.split('</t>')[0] ~ '</t>' }}", R"({"d": "x</t>y"})"), "[x]</t>");
}

TEST(TextOrigin, SurvivesReplacing) {
  EXPECT_EQ(marked("{{ '<X>'.replace('X', d) }}{{ d.replace('x', '<s>') }}", R"({"d": "axb"})"),
            "<[axb]>[a]<s>[b]");
  EXPECT_EQ(marked("{{ d|replace('x', d) }}", R"({"d": "ax"})"), "[aax]");
}

TEST(TextOrigin, SurvivesCaseAndFormatting) {
  EXPECT_EQ(marked("{{ ('ab' ~ d ~ 'c')|upper }}{{ (d ~ 'B')|capitalize }}", R"({"d": "x"})"),
            "AB[X]C[X]b");
  EXPECT_EQ(
      marked("{{ '<%s>' % d }}{{ '<{}>'.format(d) }}{{ '<%3s>'|format(d) }}", R"({"d": "x"})"),
      "<[x]><[x]><  [x]>");
  EXPECT_EQ(marked("{{ ('a\n' ~ d)|indent(2) }}", R"({"d": "x\ny"})"), "a\n  [x]\n  [y]");
}

TEST(TextOrigin, JsonAndListsKeepTheOriginOfTheirTexts) {
  EXPECT_EQ(marked("{{ t|tojson }}", R"({"t": {"k": ["</s>", 1, "a\"b"]}})"),
            R"({"[k]": ["[</s>]", 1, "[a\"b]"]})");
  EXPECT_EQ(marked("{{ {'k': d}|tojson }}{{ [d] }}", R"({"d": "x"})"), R"({"k": "[x]"}['[x]'])");
}

TEST(TextOrigin, SurvivesMacrosBlocksAndLoops) {
  EXPECT_EQ(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(d) + m('y') }}", R"({"d": "x"})"),
            "<[x]><y>");
  EXPECT_EQ(marked("{% set b %}<{{ d }}>{% endset %}{{ b|upper }}", R"({"d": "x"})"), "<[X]>");
  EXPECT_EQ(marked("{% for c in 'a' ~ d %}{{ c }}.{% endfor %}", R"({"d": "xy"})"), "a.[x].[y].");
  EXPECT_EQ(
      marked("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", R"({"d": {"a": "b"}})"),
      "[a]=[b];");
}

TEST(TextOrigin, NumbersAndTheClockAreTheTemplates) {
  EXPECT_EQ(marked("{{ n }} {{ b }} {{ strftime_now('%Y') }} {{ strftime_now(d) }}",
                   R"({"n": 3, "b": true, "d": "%Y"})"),
            "3 True 2026 [2026]");
}

TEST(TextOrigin, ModelTokensAreTheTemplates) {
  const auto chat = ChatTemplate::parse("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  ASSERT_TRUE(chat.ok());
  ChatRequest request;
  request.messages = value_from_json(R"([{"role": "user", "content": "<s>"}])").value();
  request.bos_token = "<s>";
  request.eos_token = "</s>";
  const auto prompt = chat->render(request);
  ASSERT_TRUE(prompt.ok());
  ASSERT_EQ(prompt->segments.size(), 3u);
  EXPECT_TRUE(prompt->segments[0].from_template);
  EXPECT_FALSE(prompt->segments[1].from_template);
  EXPECT_EQ(prompt->segments[1].text, "<s>");
  EXPECT_TRUE(prompt->segments[2].from_template);
  EXPECT_EQ(prompt->text(), "<s><s></s>");
}

TEST(TextOrigin, TemplateKnowsWhatItWrites) {
  const auto chat = ChatTemplate::parse("<think>{{ 'a<tool_' 'call>' }}{# <comment> #}{{ x }}");
  ASSERT_TRUE(chat.ok());
  EXPECT_TRUE(chat->writes("<think>"));
  EXPECT_TRUE(chat->writes("<tool_call>"));
  EXPECT_FALSE(chat->writes("<comment>"));
  EXPECT_FALSE(chat->writes("think>a"));
}

}  // namespace
}  // namespace tern::text

// Templates that try to run away, to reach outside, or to break the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_template/test_support.h"

namespace tern::text::jinja {
namespace {

using testing::HasSubstr;

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

// Every refusal comes within this processor time, sanitizers included.
constexpr double kSeconds = 5;
// A smaller budget, where only its being spent matters.
constexpr std::uint64_t kFewSteps = kMaxSteps / 10;

Outcome run_timed(std::string_view source, std::uint64_t max_steps = kMaxSteps) {
  const std::clock_t start = std::clock();
  Outcome outcome = run(source, make_dict({}), max_steps);
  EXPECT_LT(seconds_since(start), kSeconds * static_cast<double>(max_steps) / kMaxSteps + 0.5)
      << source.substr(0, 200);
  EXPECT_EQ(outcome.live_bytes, 0u) << "values outlived their rendering";
  return outcome;
}

TEST(HostileTemplate, RangeIsLazyAndBounded) {
  const Outcome outcome = run_timed("{% for i in range(1000000000) %}{% endfor %}");
  EXPECT_EQ(outcome.fault, FaultKind::kOverflow);
  EXPECT_EQ(run_timed("{{ range(-9223372036854775807, 9223372036854775807, "
                      "4611686018427387904)|list }}")
                .text,
            "[-9223372036854775807, -4611686018427387903, 1, 4611686018427387905]");
}

TEST(HostileTemplate, NestedLoopsRunOutOfSteps) {
  const Outcome outcome =
      run_timed("{% for i in range(25000) %}\n{% for j in range(25000) %}{% endfor %}{% endfor %}");
  EXPECT_EQ(outcome.fault, FaultKind::kLimit);
  EXPECT_THAT(outcome.message, HasSubstr("10000000 steps"));
  EXPECT_GE(outcome.line, 1);
}

TEST(HostileTemplate, StepsOfWholeOperationsCount) {
  // Few evaluations, much work in each.
  for (const std::string body :
       {"{{ (s * 50000).find('b') }}", "{{ s * 100000 }}", "{{ (s * 50000)|upper|length }}",
        "{{ (s * 50000).split('') if false else (s * 50000).split('aa')|length }}", "{{ l == m }}",
        "{{ l|sort|length }}", "{{ (s * 50000).replace('', '-')|length }}", "{{ '%1000000d' % 1 }}",
        "{{ [1] * 100000 }}", "{{ (s * 50000)|tojson|length }}", "{{ 'x'.center(1000000)|length }}",
        "{{ (s * 50000)[::-1]|length }}"}) {
    const Outcome outcome = run_timed(
        "{% set s = 'aaaaaaaaaaaaaaaaaaaa' %}{% set l = range(100000)|list %}"
        "{% set m = range(100000)|list %}{% for i in range(100000) %}" +
            std::string("{% set x %}") + body + "{% endset %}{% endfor %}",
        kFewSteps);
    EXPECT_EQ(outcome.fault, FaultKind::kLimit) << body << ": " << outcome.message;
  }
}

TEST(HostileTemplate, EndlessMacroEndsAtCallDepth64) {
  const Outcome endless = run_timed("{% macro x() %}{{ x() }}{% endmacro %}{{ x() }}");
  EXPECT_EQ(endless.fault, FaultKind::kRecursion);
  const std::string counted =
      "{% macro f(n) %}{% if n > 1 %}{{ f(n - 1) }}{% endif %}.{% endmacro %}";
  EXPECT_EQ(run_timed(counted + "{{ f(64) }}").text, std::string(64, '.'));
  EXPECT_EQ(run_timed(counted + "{{ f(65) }}").fault, FaultKind::kRecursion);
}

TEST(HostileTemplate, WideMacrosEndBeforeTheStackDoes) {
  // Each call goes through a hundred brackets.
  const Outcome outcome = run_timed("{% macro x() %}{{ " + std::string(100, '(') + "x()" +
                                    std::string(100, ')') + " }}{% endmacro %}{{ x() }}");
  EXPECT_EQ(outcome.fault, FaultKind::kRecursion);
  const Outcome lists = run_timed("{% macro x() %}{{ " + std::string(100, '[') + "x()" +
                                  std::string(100, ']') + " }}{% endmacro %}{{ x() }}");
  EXPECT_EQ(lists.fault, FaultKind::kRecursion);
}

TEST(HostileTemplate, NestingIsRefusedAtLoad) {
  for (const std::string& source :
       {"{{ " + std::string(10000, '(') + "1" + std::string(10000, ')') + " }}",
        repeated("{% if true %}", 10000) + repeated("{% endif %}", 10000),
        "{{ " + std::string(10000, '[') + std::string(10000, ']') + " }}",
        "{{ " + repeated("not ", 10000) + "1 }}", "{{ " + std::string(10000, '-') + "1 }}",
        "{{ 1" + repeated(" if a else 1", 10000) + " }}", "{{ 1" + repeated(" if a", 10000) + " }}",
        "{{ " + repeated("{1: ", 10000) + "1" + std::string(10000, '}') + " }}",
        "{{ " + repeated("f(", 10000) + std::string(10000, ')') + " }}",
        "{{ " + repeated("a[", 10000) + "1" + std::string(10000, ']') + " }}",
        "{% set " + std::string(10000, '(') + "a" + std::string(10000, ')') + " = 1 %}"}) {
    const Outcome outcome = run_timed(source);
    EXPECT_EQ(outcome.fault, FaultKind::kSyntax) << source.substr(0, 40);
    EXPECT_EQ(outcome.line, 1);
  }
}

TEST(HostileTemplate, NestingUpToTheCapIsAccepted) {
  const auto brackets = [](std::size_t n) {
    return "{{ " + std::string(n, '(') + "1" + std::string(n, ')') + " }}";
  };
  EXPECT_EQ(run(brackets(126)).text, "1");
  const Outcome beyond = run(brackets(127));
  EXPECT_EQ(beyond.fault, FaultKind::kSyntax);
  EXPECT_THAT(beyond.message, HasSubstr("128 levels"));
  const auto ifs = [](std::size_t n) {
    return repeated("{% if true %}", n) + "x" + repeated("{% endif %}", n);
  };
  EXPECT_EQ(run(ifs(126)).text, "x");
  EXPECT_EQ(run(ifs(129)).fault, FaultKind::kSyntax);
}

TEST(HostileTemplate, LongChainsAreNoNesting) {
  EXPECT_EQ(run("{{ 0" + repeated(" + 1", 20000) + " }}").text, "20000");
  EXPECT_EQ(run("{{ ''" + repeated(" ~ 'a'", 20000) + " }}").text, std::string(20000, 'a'));
  EXPECT_EQ(run("{{ 1" + repeated(" and 1", 20000) + " }}").text, "1");
  EXPECT_EQ(run("{{ 'a'" + repeated("|upper", 20000) + " }}").text, "A");
  EXPECT_EQ(run("{% if false %}" + repeated("{% elif false %}", 20000) + "{% endif %}x").text, "x");
}

TEST(HostileTemplate, NothingOfThePythonObjectsCanBeReached) {
  EXPECT_EQ(run_json("{{ messages.__class__.__mro__ }}", R"({"messages": []})").fault,
            FaultKind::kSecurity);
  EXPECT_EQ(run("{{ cycler.__init__.__globals__ }}").fault, FaultKind::kSecurity);
  EXPECT_EQ(run("{{ ''['__class__']['__mro__'] }}").fault, FaultKind::kSecurity);
  EXPECT_EQ(run("{{ ''|attr('__class__')|attr('__mro__') }}").fault, FaultKind::kSecurity);
  EXPECT_EQ(run("{{ '{0.__class__.__mro__}'.format(1) }}").fault, FaultKind::kSecurity);
  EXPECT_EQ(run("[{{ ''.__class__ }}]").text, "[]");
  EXPECT_EQ(run("{{ [].append(1) }}").fault, FaultKind::kSecurity);
}

TEST(HostileTemplate, StatementsThatReachOutsideAreRefusedAtLoad) {
  for (const std::string source :
       {"{% include \"x\" %}", "{% import 'x' as y %}", "{% from 'x' import y %}",
        "{% extends 'x' %}", "{% block a %}{% endblock %}",
        "{% if false %}{% include 'x' %}{% endif %}"}) {
    const auto chat = ChatTemplate::parse("\n" + source);
    ASSERT_FALSE(chat.ok()) << source;
    EXPECT_EQ(chat.error().code(), ErrorCode::kTemplate);
    EXPECT_THAT(chat.error().message(), HasSubstr("line 2, column"));
    EXPECT_THAT(chat.error().message(), HasSubstr("not part of the template language"));
  }
}

TEST(HostileTemplate, UnknownFiltersAndTestsCountWhereTheyAreReached) {
  const auto load = [](std::string_view source) { return ChatTemplate::parse(source); };
  EXPECT_EQ(load("a\n{{ 'a'|nosuch }}").error().message(),
            "chat template, line 2, column 8: No filter named 'nosuch'.");
  EXPECT_EQ(load("{{ 'a' is nosuch }}").error().message(),
            "chat template, line 1, column 11: No test named 'nosuch'.");
  EXPECT_FALSE(load("{% for i in [] %}{{ i|nosuch }}{% endfor %}").ok());
  EXPECT_EQ(run("{% if false %}{{ 'a'|nosuch }}{% else %}x{% endif %}").text, "x");
  EXPECT_EQ(run("{% if true %}x{% elif 1|nosuch %}{% else %}{{ 1 is nosuch }}{% endif %}").text,
            "x");
  EXPECT_EQ(run("{{ 'x' if true else 1|nosuch }}").text, "x");
  EXPECT_EQ(run("{{ 1|nosuch if false else 'x' }}").text, "x");
  const Outcome reached = run("{% if true %}\n{{ 'a'|nosuch }}{% endif %}");
  EXPECT_EQ(reached.fault, FaultKind::kRuntime);
  EXPECT_EQ(reached.message, "No filter named 'nosuch' found.");
  EXPECT_EQ(reached.line, 2);
}

TEST(HostileTemplate, UndefinedIsEmptyUntilItIsUsed) {
  EXPECT_EQ(run("[{{ x }}]").text, "[]");
  const Outcome outcome = run("a\n\n{{ x.y.z }}");
  EXPECT_EQ(outcome.fault, FaultKind::kUndefined);
  EXPECT_EQ(outcome.message, "'x' is undefined");
  EXPECT_EQ(outcome.line, 3);
}

TEST(HostileTemplate, UnterminatedPartsNameLineAndColumn) {
  const auto message = [](std::string_view source) {
    const auto chat = ChatTemplate::parse(source);
    return chat.ok() ? std::string("loaded") : chat.error().message();
  };
  EXPECT_THAT(message("a\nb {{ x"), HasSubstr("line 2, column 3: "));
  EXPECT_THAT(message("a\nb {% if x"), HasSubstr("line 2, column 3: "));
  EXPECT_THAT(message("ü\nü {# x"), HasSubstr("line 2, column 3: Missing end of comment"));
  EXPECT_THAT(message("{{\n 'abc }}"), HasSubstr("line 2, column 2: a string is not closed"));
  EXPECT_THAT(message("{% raw %} {{"), HasSubstr("line 1, column 1: Missing end of raw"));
  EXPECT_THAT(message("{% if x %}a"), HasSubstr("'elif' or 'else' or 'endif'"));
  EXPECT_THAT(message("{{ (1] }}"), HasSubstr("line 1, column 6: unexpected ']', expected ')'"));
  EXPECT_THAT(message("{{ 1 ! 2 }}"), HasSubstr("column 6: unexpected char '!'"));
  EXPECT_THAT(message("{% endfor %}"), HasSubstr("unknown tag 'endfor'"));
  EXPECT_THAT(message("{{ '\\ud800' }}"), HasSubstr("no Unicode character"));
}

TEST(HostileTemplate, ArithmeticNeverWrapsOrTraps) {
  for (const std::string_view source :
       {"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}",
        "{{ 4611686018427387904 * 2 }}", "{{ 2 ** 63 }}", "{{ (-9223372036854775807 - 1)|abs }}",
        "{{ -(-9223372036854775807 - 1) }}", "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ 9223372036854775808 + 1 }}"}) {
    EXPECT_EQ(run(source).fault, FaultKind::kOverflow) << source;
  }
  for (const std::string_view source : {"{{ 1 // 0 }}", "{{ -1 % 0 }}", "{{ 1 / 0 }}",
                                        "{{ 1.5 // 0 }}", "{{ 1.5 % 0.0 }}", "{{ 0 ** -1 }}"}) {
    EXPECT_EQ(run(source).fault, FaultKind::kZeroDivision) << source;
  }
  EXPECT_EQ(run("{{ (-9223372036854775807 - 1) % -1 }} {{ -9223372036854775808 }}").text,
            "0 -9223372036854775808");
}

TEST(HostileTemplate, ValuesAreNestedToALimitOnly) {
  const Outcome deep = run_timed(
      "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor "
      "%}");
  EXPECT_EQ(deep.fault, FaultKind::kRecursion);
  // A list that holds itself twice, a hundred times: small in memory, endless to walk.
  const std::string twice =
      "{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(100) %}"
      "{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}";
  EXPECT_EQ(run_timed(twice + "{{ a.l == b.l }}", kFewSteps).fault, FaultKind::kLimit);
  EXPECT_EQ(run_timed(twice + "{{ a.l|tojson }}", kFewSteps).fault, FaultKind::kLimit);
  EXPECT_EQ(run_timed(twice + "{{ a.l }}", kFewSteps).fault, FaultKind::kLimit);
  EXPECT_EQ(run_timed(twice + "{{ a.l < b.l }}", kFewSteps).fault, FaultKind::kLimit);
}

TEST(HostileTemplate, NamespacesInCirclesAreFreed) {
  EXPECT_EQ(run_timed("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}"
                      "{% macro m() %}{% endmacro %}{% set a.m = m %}x")
                .text,
            "x");
  const Outcome chain = run_timed(
      "{% set o = namespace(n=namespace()) %}{% for i in range(100000) %}"
      "{% set o.n = namespace(p=o.n) %}{% endfor %}x");
  EXPECT_EQ(chain.text, "x");
  const Outcome printed = run_timed("{% set a = namespace() %}{% set a.a = a %}{{ a }}");
  EXPECT_EQ(printed.fault, FaultKind::kRecursion);
}

TEST(HostileTemplate, LoopObjectsDoNotHoldEachOther) {
  EXPECT_EQ(run_timed("{% set o = namespace(l=none) %}{% for i in range(100) %}"
                      "{% for j in [o.l] %}{{ '' if loop.changed(loop) }}{% set o.l = loop %}"
                      "{% endfor %}{% endfor %}{{ o.l.index }}")
                .text,
            "1");
}

TEST(HostileTemplate, TextsAndListsAreBounded) {
  EXPECT_EQ(run_timed("{{ 'a' * 1000000000 }}").fault, FaultKind::kLimit);
  EXPECT_EQ(run_timed("{{ [1] * 1000000000 }}").fault, FaultKind::kLimit);
  EXPECT_EQ(run_timed("{{ ('a' ~ 1) * 9223372036854775807 }}").fault, FaultKind::kLimit);
  EXPECT_EQ(run_timed("{{ '%2000000000d' % 1 }}").fault, FaultKind::kValue);
  EXPECT_EQ(run_timed("{{ '{:2000000000}'.format(1) }}").fault, FaultKind::kValue);
  EXPECT_EQ(run_timed("{{ 'x'.center(9223372036854775807) }}").fault, FaultKind::kLimit);
  EXPECT_EQ(run_timed("{% set ns = namespace(s='ab') %}{% for i in range(60) %}"
                      "{% set ns.s = ns.s + ns.s %}{% endfor %}")
                .fault,
            FaultKind::kLimit);
  EXPECT_EQ(run_timed("{% set ns = namespace(l=[]) %}{% for i in range(100) %}"
                      "{% set ns.l = ns.l + ['a' * 2000000] %}{% endfor %}")
                .fault,
            FaultKind::kLimit);
}

TEST(HostileTemplate, OutputEndsAt16MiB) {
  EXPECT_EQ(run("{{ 'a' * 16777216 }}").text.size(), kMaxOutputBytes);
  const Outcome beyond = run("{{ 'a' * 16777216 }}b");
  EXPECT_EQ(beyond.fault, FaultKind::kLimit);
  EXPECT_THAT(beyond.message, HasSubstr("16 MiB"));
}

TEST(HostileTemplate, FiltersThatCallFiltersEnd) {
  EXPECT_EQ(run_timed("{{ 'a'|map(" + repeated("'map',", 10000) + "'upper')|list }}").fault,
            FaultKind::kRecursion);
  EXPECT_EQ(run_timed("{{ [['a']]|map('map', 'upper')|map('list')|list }}").text, "[['A']]");
}

TEST(HostileTemplate, NamespaceTargetsAreCheckedWhenTheyAreSet) {
  EXPECT_EQ(run("{% set ns = namespace() %}{% set ns, ns.a = 1, 2 %}").fault, FaultKind::kRuntime);
}

TEST(HostileTemplate, SourcesAreBoundedAndValid) {
  EXPECT_TRUE(ChatTemplate::parse(std::string(kMaxSourceBytes, 'a')).ok());
  const auto large = ChatTemplate::parse(std::string(kMaxSourceBytes + 1, 'a'));
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(large.error().message(), HasSubstr("1048577 bytes"));
  const auto invalid = ChatTemplate::parse("abc\xff");
  ASSERT_FALSE(invalid.ok());
  EXPECT_THAT(invalid.error().message(), HasSubstr("byte 3 is not valid UTF-8"));
}

TEST(HostileTemplate, LargeTemplatesLoadInLinearTime) {
  const std::clock_t start = std::clock();
  const std::string block = "{% if a %}{% set b = 1 %}{{ b|upper }}{% endif %}\n";
  EXPECT_TRUE(ChatTemplate::parse(repeated(block, 20000)).ok());
  EXPECT_TRUE(ChatTemplate::parse(repeated("{{ a }}", 140000)).ok());
  EXPECT_TRUE(ChatTemplate::parse(repeated("{%", 1) + " if a %}" + repeated("{#-#}", 100000) +
                                  "{% endif %}")
                  .ok());
  EXPECT_LT(seconds_since(start), kSeconds);
}

Value conversation(std::size_t messages, std::size_t bytes) {
  std::vector<Value> list;
  for (std::size_t i = 0; i < messages; ++i) {
    Dict message;
    message.set("role", Value::string(i % 2 == 0 ? "user" : "assistant"));
    message.set("content", Value::string(" " + std::string(bytes, 'a') + "</think>x "));
    list.push_back(make_dict(std::move(message)));
  }
  Dict variables;
  variables.set("messages", Value::list(std::move(list)));
  return make_dict(std::move(variables));
}

// What published templates do with every message, with little output.
constexpr std::string_view kBusyTemplate =
    "{% set ns = namespace(last='') %}{% for m in messages %}"
    "{% set content = m.content|trim %}{% if '</think>' in content %}"
    "{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
    "{% set line = '<|' + m.role + '|>' + m['content'] + '<|end|>' %}"
    "{% if loop.first or messages[loop.index0 - 1].role != m.role %}{{ content }}{% endif %}"
    "{% set ns.last = line[:1] %}{% endfor %}{{ ns.last }}";

TEST(HostileTemplate, LongConversationsTakeLinearTime) {
  const Value small = conversation(250, 100000);
  const Value large = conversation(1000, 100000);
  const std::clock_t start = std::clock();
  const Outcome few = run(kBusyTemplate, small);
  const Outcome many = run(kBusyTemplate, large);
  EXPECT_LT(seconds_since(start), kSeconds);
  EXPECT_EQ(few.text, std::string(250, 'x') + "<");
  EXPECT_EQ(many.text, std::string(1000, 'x') + "<");
  EXPECT_LE(many.steps, few.steps * 4 + 1000);
}

TEST(HostileTemplate, LongConversationsEndAtTheOutputLimit) {
  const Outcome outcome =
      run("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}",
          conversation(1000, 100000));
  EXPECT_EQ(outcome.fault, FaultKind::kLimit);
  EXPECT_THAT(outcome.message, HasSubstr("16 MiB"));
}

}  // namespace
}  // namespace tern::text::jinja

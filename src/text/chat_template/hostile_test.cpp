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

// Few evaluations, much work in each: the large texts and lists are made once, before the loop.
Outcome run_often(const std::string& body) {
  SCOPED_TRACE(body);
  return run_timed(
      "{% set a = 'a' * 1000000 %}{% set ab = a + 'b' %}{% set ba = 'b' + a %}"
      "{% set other = 'a' * 1000000 %}{% set d = {a: 1} %}"
      "{% set l = range(100000)|list %}{% set m = range(100000)|list %}"
      "{% for i in range(20000) %}{% set x %}" +
          body + "{% endset %}{% endfor %}",
      kFewSteps);
}

TEST(HostileTemplate, StepsOfWholeOperationsCount) {
  // The loop alone ends, so that what fails below is the work of the method.
  ASSERT_FALSE(run_often("{{ a|length }}{{ a is defined }}").fault);
  for (const std::string body : {
           "a.capitalize()|length",
           "a.casefold()|length",
           "a.center(1000002)|length",
           "a.count('b')",
           "ab.endswith(ab)",
           "a.expandtabs()|length",
           "a.find('b')",
           "a.find('ab')",
           "'{}'.format(a)|length",
           "ab.index('b')",
           "a.isalnum()",
           "a.isalpha()",
           "a.isdecimal()",
           "a.isdigit()",
           "a.isidentifier()",
           "a.islower()",
           "a.isnumeric()",
           "a.isprintable()",
           "a.isspace()",
           "a.istitle()",
           "a.isupper()",
           "a.join(['b', 'b'])|length",
           "a.ljust(1000002)|length",
           "a.lower()|length",
           "a.lstrip('a')|length",
           "a.partition('b')|length",
           "ab.removeprefix(a)|length",
           "ba.removesuffix(a)|length",
           "a.replace('b', '')|length",
           "a.replace('', '-')|length",
           "a.rfind('b')",
           "a.rfind('ba')",
           "ba.rindex('b')",
           "ba.rindex('ba')",
           "a.rjust(1000002)|length",
           "a.rpartition('b')|length",
           "a.rsplit('b')|length",
           "a.rsplit('bb', 1)|length",
           "a.rstrip('a')|length",
           "a.split('b')|length",
           "a.split()|length",
           "a.splitlines()|length",
           "a.startswith(a)",
           "a.strip('a')|length",
           "a.swapcase()|length",
           "a.title()|length",
           "a.upper()|length",
           "a.zfill(1000002)|length",
           "a|upper|length",
           "a|tojson|length",
           "a|int",
           "a|float",
           "a[::-1]|length",
           "(a ~ 'b')|length",
           "('b' in a)",
           "(a == other)",
           "d[other]",
           "d.get(other)",
           "(other in d)",
           "('%s' % a)|length",
           "'%1000000d' % 1",
           "('ab' * 1000000)|length",
           "([1] * 100000)|length",
           "(l == m)",
           "l|sort|length",
           "l|batch(200000, 0)|list|length",
       }) {
    const Outcome outcome = run_often("{{ " + body + " }}");
    EXPECT_EQ(outcome.fault, FaultKind::kLimit) << body << ": " << outcome.message;
  }
}

TEST(HostileTemplate, WhatNamesSomethingAbsentIsShort) {
  const Outcome many = run_timed(
      "{% set ns = namespace(l=[]) %}{% set b = 'x' * 60000000 %}"
      "{% for i in range(100000) %}{% set ns.l = ns.l + [{}[b]] %}{% endfor %}");
  EXPECT_EQ(many.fault, FaultKind::kLimit);
  EXPECT_LT(many.most_live_bytes, 70u << 20);
  EXPECT_EQ(run("{% set b = 'x' * 81 %}{{ {}[b].c }}").message,
            "'dict object' has no attribute '" + std::string(80, 'x') + "'...");
  EXPECT_EQ(run("{% set b = '__' + 'x' * 1000 %}{{ {}[b].c }}").message,
            "access to attribute '__" + std::string(78, 'x') + "'... of 'dict' object is unsafe.");
  EXPECT_EQ(run("{% set ns = namespace(a=1) %}{{ {}[ns].c }}").message,
            "dict object has no element Namespace");
  EXPECT_EQ(run("{{ {}[1].c }}").message, "dict object has no element 1");
}

TEST(HostileTemplate, WhatNamesSomethingAbsentCountsAsAlive) {
  // Each of the 100-byte messages is held by a list of its own chain.
  const Outcome outcome = run_timed(
      "{% set ns = namespace(l=none) %}{% for i in range(200) %}{% set ns.l = [{}['a'], ns.l] %}"
      "{% endfor %}");
  EXPECT_FALSE(outcome.fault) << outcome.message;
  EXPECT_GT(outcome.most_live_bytes, 200u * (sizeof(UndefinedData) + 36));
}

TEST(HostileTemplate, NamespacesAndRowsOfBatchesCountAsAlive) {
  const std::string names = [] {
    std::string all;
    for (int i = 0; i < 1000; ++i) all += fmt::format("{{% set ns.name_{} = 1 %}}", i);
    return all;
  }();
  const Outcome outcome = run_timed("{% set ns = namespace() %}" + names);
  EXPECT_FALSE(outcome.fault) << outcome.message;
  EXPECT_GT(outcome.most_live_bytes, 1000u * (kBytesPerEntry + sizeof(StringData)));
  const Outcome rows = run_timed("{{ [1]|batch(9000000000, 0)|list|length }}");
  EXPECT_EQ(rows.fault, FaultKind::kLimit);
  EXPECT_THAT(rows.message, HasSubstr("rows of 9000000000 items"));
  const Outcome large = run_timed("{{ [1]|batch(4000000, 0)|list|length }}");
  EXPECT_FALSE(large.fault) << large.message;
  EXPECT_GT(large.most_live_bytes, 4000000u * sizeof(Value) - 1);
  EXPECT_EQ(run("{{ [1, 2, 3]|batch(2, 0)|list }}").text, "[[1, 2], [3, 0]]");
}

TEST(HostileTemplate, IntegersHaveAsManyDigitsAsInPython) {
  EXPECT_EQ(run("{{ ('9' * 4300)|int }}").text, std::string(4300, '9'));
  EXPECT_EQ(run("{{ ('9' * 4301)|int(7) }}").text, "7");
  EXPECT_EQ(run("{{ " + std::string(4300, '9') + " }}").text, std::string(4300, '9'));
  EXPECT_THAT(run("{{ " + std::string(4301, '9') + " }}").message, HasSubstr("at most 4300"));
}

TEST(HostileTemplate, ACallTakes255Arguments) {
  const auto call = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += fmt::format("a{}={},", i, i);
    return "{{ dict(" + list + ")|length }}";
  };
  EXPECT_EQ(run(call(255)).text, "255");
  EXPECT_THAT(run(call(256)).message, HasSubstr("more than 255 arguments"));
  EXPECT_EQ(run("{{ cycler(*range(255)).next() }}").text, "0");
  EXPECT_THAT(run("{{ cycler(*range(256)).next() }}").message, HasSubstr("at most 255"));
  EXPECT_THAT(run("{% set d = dict(a=1) %}{% macro m() %}{{ kwargs|length }}{% endmacro %}"
                  "{{ m(*range(255), **d) }}")
                  .message,
              HasSubstr("passes 256 arguments; at most 255"));
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
  EXPECT_EQ(run_timed("{{ 'a'|map(" + repeated("'map',", 200) + "'upper')|list }}").fault,
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
  std::string names;
  for (int i = 0; i < 100000; ++i) names += fmt::format("a{}=1,", i);
  const auto call = ChatTemplate::parse("{{ f(" + names + ") }}");
  ASSERT_FALSE(call.ok());
  EXPECT_THAT(call.error().message(), HasSubstr("a call has more than 255 arguments"));
  const auto macro = ChatTemplate::parse("{% macro m(" + names + "b) %}{% endmacro %}");
  ASSERT_FALSE(macro.ok());
  EXPECT_THAT(macro.error().message(), HasSubstr("a macro has more than 255 parameters"));
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

#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "expect_error.h"
#include "jinja/json.h"
#include "source_dir.h"
#include "temporary_folder.h"

namespace sluice::text {
namespace {

using Json = nlohmann::ordered_json;

ChatOptions options() {
  ChatOptions result;
  result.now.emplace();
  result.now->tm_year = 2024 - 1900, result.now->tm_mon = 6, result.now->tm_mday = 26;
  result.now->tm_hour = 15, result.now->tm_min = 4, result.now->tm_sec = 5;
  result.now->tm_wday = 5, result.now->tm_yday = 207;
  return result;
}

std::string render(const std::string& source, const Json& variables = Json::object()) {
  return ChatTemplate(source).render(variables, options());
}

std::string error_of(const std::string& source, const Json& variables = Json::object()) {
  try {
    return "rendered: " + render(source, variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << source;
    return error.what();
  }
}

void check(const std::string& source, const Json& variables, const Json& item) {
  SCOPED_TRACE(source);
  if (item.contains("output")) {
    try {
      EXPECT_EQ(render(source, variables), item["output"].get<std::string>());
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    return;
  }
  std::string message = error_of(source, variables);
  std::string wanted = item.value("message", "");
  EXPECT_EQ(message.rfind("rendered: ", 0), std::string::npos) << message << "; wanted " << item["error"];
  if (item["error"] == "raised") {
    EXPECT_EQ(message, wanted);
  } else if (item["error"] == "undefined") {
    EXPECT_NE(message.find(wanted), std::string::npos) << message << "; wanted " << wanted;
  }
}

class Goldens : public testing::TestWithParam<const char*> {};

TEST_P(Goldens, RenderAsJinja2) {
  const std::string text = read_all(test_data() + "/text/chat_template/" + GetParam() + ".json");
  Json golden = jinja::parse_document(text);
  ASSERT_GT(golden["cases"].size(), 10u);
  for (const Json& item : golden["cases"]) {
    check(golden["templates"][item["template"].get<std::size_t>()].get<std::string>(),
          golden["variables"][item["variables"].get<std::size_t>()], item);
  }
}

INSTANTIATE_TEST_SUITE_P(ChatTemplate, Goldens,
                         testing::Values("expressions", "statements", "chats", "random"));

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("a\nb\n{{ x.y }}"), "chat template, line 3: 'x' is undefined");
  EXPECT_EQ(error_of("a\n{% bogus %}"), "chat template, line 2: Encountered unknown tag 'bogus'.");
  EXPECT_EQ(error_of("{{ 9223372036854775807 + 1 }}"),
            "chat template, line 1: integer result does not fit in 64 bits");
  EXPECT_EQ(error_of("{{ 0x8000000000000000 }}"),
            "chat template, line 1: the integer 8000000000000000 does not fit in 64 bits");
}

// Any attempt of a template to run or grow without end is an error in finite time.
TEST(ChatTemplate, HostileTemplatesFail) {
  const std::string doubling =
      "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}";
  const std::string nesting =
      "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}";
  const std::string sharing =
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
  const std::string cyclic = "{% set ns = namespace() %}{% set ns.me = [ns] %}";
  const std::string same =
      "{% set a = namespace(x=[1]) %}{% set b = namespace(x=[1]) %}{% for i in range(60) %}"
      "{% set a.x = [a.x, a.x] %}{% set b.x = [b.x, b.x] %}{% endfor %}";
  for (const std::string& source : std::vector<std::string>{
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro a(n) %}{{ b(n) }}{% endmacro %}{% macro b(n) %}{{ a(n) }}{% endmacro %}{{ a(1) }}",
           "{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}",
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           doubling,
           nesting,
           sharing + "{{ ns.x }}",
           sharing + "{{ ns.x | tojson }}",
           sharing + "{{ {ns.x: 1} }}",
           same + "{{ a.x == b.x }}",
           same + "{{ a.x < b.x }}",
           cyclic + "{{ ns }}",
           cyclic + "{{ ns.me | tojson }}",
           "{{ 'x' * 999999999999 }}",
           "{{ [1] * 999999999999 }}",
           "{{ 'x'.center(999999999999) }}",
           "{{ '%999999999d' % 1 }}",
           "{{ '{:999999999}'.format(1) }}",
           "{{ 'a'|indent(999999999999, true) }}",
           "{{ [1]|tojson(indent=999999999999) }}",
           "{{ [1]|batch(999999999999, 0)|list }}",
           "{{ [1]|slice(999999999999)|list }}",
           "{{ ('x' * 9999999).replace('', 'y' * 9999) }}",
           "{{ range(0, 9223372036854775807, 1) }}",
           "{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}",
           "{{ " + std::string(5000, '[') + std::string(5000, ']') + " }}",
           "{{ " + std::string(5000, '-') + "1 }}",
       }) {
    std::string message = error_of(source);
    EXPECT_EQ(message.rfind("chat template, line ", 0), 0u)
        << source.substr(0, 100) << " -> " << message.substr(0, 100);
  }
}

TEST(ChatTemplate, LongChainsOfOperatorsFail) {
  std::string sum = "{{ 1", filters = "{{ 1", dots = "{{ x";
  for (int i = 0; i < 100000; ++i) sum += " + 1", filters += "|string", dots += ".a";
  for (const std::string& source : {sum + " }}", filters + " }}", dots + " }}"})
    EXPECT_EQ(error_of(source), "chat template, line 1: the expression nests too deeply");
}

TEST(ChatTemplate, LimitsAreOptions) {
  ChatTemplate looping("{% for i in range(1000) %}0123456789{% endfor %}");
  ChatOptions few = options();
  EXPECT_EQ(looping.render(Json::object(), few).size(), 10000u);
  few.limits.output_bytes = 9999;
  expect_error(ErrorKind::input, {"line 1", "9999 are allowed"},
               [&] { looping.render(Json::object(), few); });
  few = options();
  few.limits.steps = 500;
  expect_error(ErrorKind::input, {"line 1", "500 steps"}, [&] { looping.render(Json::object(), few); });
}

TEST(ChatTemplate, TimeIsAbsentUnlessGiven) {
  ChatTemplate dated("{{ strftime_now('%Y') if strftime_now is defined else 'unknown' }}");
  EXPECT_EQ(dated.render(Json::object(), options()), "2024");
  EXPECT_EQ(dated.render(Json::object()), "unknown");
}

TEST(ChatTemplate, TakesIntegersOfSixtyFourBits) {
  EXPECT_EQ(ChatTemplate("{{ x }}").render(Json{{"x", 18446744073709551615u}}), "18446744073709551615");
}

TEST(ChatTemplate, RejectsWrongVariables) {
  ChatTemplate empty("");
  expect_error(ErrorKind::input, {"messages", "not object"},
               [&] { empty.render(Json::object(), nullptr, nullptr); });
  expect_error(ErrorKind::input, {"tools", "not string"},
               [&] { empty.render(Json::array(), "tools", nullptr); });
  expect_error(ErrorKind::input, {"variables", "not array"},
               [&] { empty.render(Json::array(), nullptr, Json::array()); });
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  expect_error(ErrorKind::input, {"variables", "nest"}, [&] { empty.render(Json{{"x", deep}}); });
}

TEST(ChatTemplates, ChoosesByToolsAndPassesSpecialTokens) {
  Json config = {{"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}};
  config["chat_template"] = {
      {{"name", "default"}, {"template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"}},
      {{"name", "tool_use"}, {"template", "{{ tools|length }}{{ add_generation_prompt }}{{ mode }}"}}};
  ChatTemplates templates(config);
  Json messages = {{{"role", "user"}, {"content", "hi"}}};
  EXPECT_EQ(templates.render(messages, nullptr, nullptr), "<s>hi</s>");
  EXPECT_EQ(templates.render(messages, Json::array({1, 2}), {{"mode", "fast"}}), "2Truefast");
  EXPECT_EQ(ChatTemplates(config, "file: {{ bos_token }}").render(messages, nullptr, nullptr), "file: <s>");
  config["chat_template"] = "{{ messages|length }}";
  EXPECT_EQ(ChatTemplates(config).render(messages, nullptr, nullptr), "1");
  config.erase("chat_template");
  expect_error(ErrorKind::checkpoint, {"no default chat template"}, [&] { ChatTemplates{config}; });
}

}  // namespace
}  // namespace sluice::text

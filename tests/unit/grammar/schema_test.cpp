#include "base/json.h"
#include "expect_error.h"
#include "unit/grammar/grammar_fixture.h"

namespace sluice {
namespace {

struct SchemaCase {
  const char* schema;
  std::vector<const char*> valid, invalid;
};

void check(const SchemaCase& schema_case) {
  const auto grammar = schema_grammar(schema_case.schema);
  for (const char* text : schema_case.valid)
    EXPECT_TRUE(accepts(grammar, text)) << schema_case.schema << "\n" << text;
  for (const char* text : schema_case.invalid)
    EXPECT_FALSE(accepts(grammar, text)) << schema_case.schema << "\n" << text;
}

TEST(GrammarSchema, Scalars) {
  check({R"({"type":"string"})",
         {R"("")", R"("a\nb")", R"("日本😀")", R"("\u0001")"},
         {"\"a\nb\"", R"("\x")", R"("\u0041")", "1", "\"\xE6\""}});
  check({R"({"type":"string","minLength":2,"maxLength":3})",
         {R"("ab")", R"("日本語")", R"("\n\t")"},
         {R"("a")", R"("abcd")"}});
  check({R"({"type":"integer"})", {"0", "-7", "1234567890123456789012"}, {"01", "1.5", "-", "1e5", "+1"}});
  check({R"({"type":"number"})", {"0", "-0.5", "1e10", "2.5E-3"}, {".5", "1.", "1e", "--1"}});
  check({R"({"type":["null","boolean"]})", {"null", "true", "false"}, {"0", "\"\""}});
  check({R"({"enum":[1,"a",{"b":[2,{}]},null]})",
         {"1", "\"a\"", R"({"b": [2, {}]})", R"({"b":[2,{}]})", "null"},
         {"2", "\"b\"", "{}"}});
  check({R"({"const":"é\"\\"})", {R"("é\"\\")"}, {R"("e")"}});
}

TEST(GrammarSchema, Objects) {
  check(
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["b"],"additionalProperties":false})",
       {R"({"a": 1, "b": ""})", R"({"b":""})", "{\n  \"a\": 1,\n  \"b\": \"\"\n}"},
       {"{}", R"({"a": 1})", R"({"b": "", "a": 1})", R"({"b": "", "c": 1})", R"({"b": "",})",
        R"({"b": "", "b": ""})"}});
  check(
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"boolean"}})",
       {"{}", R"({"a": 1, "b": true})", R"({"aa": true})", R"({"": false})"},
       {R"({"a": true})", R"({"b": 1})", R"({"b": true, "a": true})", R"({"\u0061": true})"}});
  check(
      {R"({"type":"object","patternProperties":{"^x":{"type":"integer"},"y$":{"minimum":5}},"additionalProperties":false})",
       {R"({"x": 1})", R"({"xy": 5})", R"({"y": "any"})"},
       {R"({"xy": 4})", R"({"z": 1})", R"({"xy": "s"})"}});
  check({R"({"type":"object","propertyNames":{"pattern":"^[a-c]+$"},"minProperties":1,"maxProperties":2})",
         {R"({"a": 1})", R"({"a": 1, "bc": []})"},
         {"{}", R"({"d": 1})", R"({"a": 1, "b": 2, "c": 3})"}});
  check(
      {R"({"type":"object","properties":{"a":true,"b":true,"c":true},"minProperties":2,"additionalProperties":false})",
       {R"({"a": 1, "c": 2})", R"({"a": 1, "b": 1, "c": 2})"},
       {R"({"b": 1})", "{}"}});
  check(
      {R"({"type":"object","properties":{"card":{"type":"integer"},"bill":{"type":"string"}},"dependentRequired":{"card":["bill"]}})",
       {R"({"bill": ""})", R"({"card": 1, "bill": ""})", "{}"},
       {R"({"card": 1})"}});
}

TEST(GrammarSchema, Arrays) {
  check({R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
         {"[1]", "[1, 2]", "[1,2,3]"},
         {"[]", "[1, 2, 3, 4]", "[\"a\"]", "[1,]"}});
  check({R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
         {"[]", "[1]", R"([1, "a"])"},
         {R"(["a"])", R"([1, "a", 2])"}});
  check({R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"minContains":2})",
         {"[5, 6]", "[1, 5, 2, 7]"},
         {"[]", "[5]", "[1, 2, 5]"}});
  check({R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"maxContains":1})",
         {"[5]", "[1, 5, 2]"},
         {"[]", "[5, 6]", "[1]"}});
  check({R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true,"minItems":1})",
         {R"(["a"])", R"(["c", "a", "b"])"},
         {"[]", R"(["a", "a"])", R"(["a", "b", "a"])"}});
}

TEST(GrammarSchema, Combinations) {
  check({R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
         {"1", "\"a\""},
         {"\"ab\"", "null"}});
  check({R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "\"a\""}, {"3", "1.5"}});
  check(
      {R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"a":{"minimum":3},"b":{"type":"null"}}}],"type":"object"})",
       {R"({"a": 3})", R"({"a": 4, "b": null})"},
       {R"({"a": 2})", "{}", R"({"a": 3, "b": 1})"}});
  check(
      {R"({"type":"object","properties":{"kind":{"enum":["x","y"]},"v":{}},"required":["kind","v"],"additionalProperties":false,
            "if":{"properties":{"kind":{"const":"x"}}},"then":{"properties":{"v":{"type":"integer"}}},"else":{"properties":{"v":{"type":"string"}}}})",
       {R"({"kind": "x", "v": 1})", R"({"kind": "y", "v": "s"})"},
       {R"({"kind": "x", "v": "s"})", R"({"kind": "y", "v": 1})"}});
  check({R"({"not":{"type":["integer","object"]}})", {"\"a\"", "1.5", "[]", "null"}, {"1", "{}"}});
  check({R"({"type":"integer","not":{"enum":[3,5]}})", {"4", "33", "-3"}, {"3", "5"}});
  check(
      {R"({"$defs":{"t":{"type":"object","properties":{"l":{"$ref":"#/$defs/t"},"v":{"type":"integer"}},"required":["v"],"additionalProperties":false}},"$ref":"#/$defs/t"})",
       {R"({"l": {"l": {"v": 1}, "v": 2}, "v": 3})"},
       {R"({"l": {}, "v": 3})"}});
}

TEST(GrammarSchema, WhatIsNotSupportedIsRefusedWithItsPath) {
  expect_error(ErrorKind::unsupported, {"#/properties/a/unevaluatedItems"},
               [] { schema_grammar(R"({"properties":{"a":{"unevaluatedItems":false}}})"); });
  expect_error(ErrorKind::unsupported, {"#/items/pattern", "word boundary"},
               [] { schema_grammar(R"({"items":{"pattern":"\\bword"}})"); });
  expect_error(ErrorKind::unsupported, {"#/$ref", "other.json"},
               [] { schema_grammar(R"({"$ref":"other.json#/a"})"); });
  expect_error(ErrorKind::input, {"#/$ref"}, [] { schema_grammar(R"({"$ref":"#/$defs/x"})"); });
  expect_error(ErrorKind::unsupported, {"#/uniqueItems"},
               [] { schema_grammar(R"({"type":"array","uniqueItems":true})"); });
  expect_error(ErrorKind::input, {"#/type", "'strin'"}, [] { schema_grammar(R"({"type":"strin"})"); });
  expect_error(ErrorKind::input, {"no text"},
               [] { schema_grammar(R"({"type":"integer","minimum":3,"maximum":2})"); });
  expect_error(ErrorKind::input, {"no text"}, [] {
    schema_grammar(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})");
  });
  expect_error(ErrorKind::input, {"invalid JSON"}, [] { schema_grammar("{"); });
}

TEST(GrammarSchema, HostileSchemasEndWithinTheirLimits) {
  std::string deep;
  for (int i = 0; i < 190; ++i) deep += R"({"items":)";
  EXPECT_NO_THROW(schema_grammar(deep + "true" + std::string(190, '}')));
  std::string deeper;
  for (int i = 0; i < 5000; ++i) deeper += "[";
  expect_error(ErrorKind::input, {"nested"}, [&] { schema_grammar(deeper); });
  expect_error(ErrorKind::unsupported, {"combinations"}, [] {
    std::string schema = R"({"allOf":[)";
    for (int i = 0; i < 30; ++i)
      schema +=
          (i > 0 ? "," : "") +
          fmt::format(R"({{"anyOf":[{{"minimum":{0}}},{{"maximum":{0}}},{{"multipleOf":{1}}}]}})", i, i + 1);
    schema_grammar(schema + "]}");
  });
  EXPECT_THROW(schema_grammar(R"({"$ref":"#"})"), Error);
  EXPECT_THROW(schema_grammar(R"({"anyOf":[{"$ref":"#"},{"$ref":"#"}]})"), Error);
  // Every mask of an exponential pattern is found or refused, never awaited.
  const auto grammar = schema_grammar(R"({"type":"string","pattern":"^(a|a)*(a|aa)+(a*)*b{1,1000}$"})");
  Matcher matcher(grammar);
  std::vector<std::uint32_t> bits(matcher.mask_words());
  for (const char* text : {"\"", "aaaaaaaaaaaaaaa", "bbbb"}) {
    EXPECT_EQ(matcher.accept_text(text), std::string_view(text).size());
    matcher.mask(bits);
  }
}

}  // namespace
}  // namespace sluice

#include <chrono>

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

// JSON parsers keep the last value of a repeated name, so earlier values must not count.
TEST(GrammarSchema, RepeatedNamesFulfilNothing) {
  check({R"({"type":"object","minProperties":2,"additionalProperties":{"type":"integer"}})",
         {R"({"a": 1, "b": 2})", R"({"a": 1, "a": 2, "b": 3})", R"({"item1": 1, "item2": 1})",
          R"({"": 1, "x": 1})"},
         {"{}", R"({"a": 1})", R"({"a": 1, "a": 2})", R"({"": 1, "": 2})", R"({"a": 1, "a": 2, "a": 3})"}});
  check(
      {R"({"type":"object","properties":{"k":{}},"minProperties":4,"patternProperties":{"^x":{}},"additionalProperties":{"type":"null"}})",
       {R"({"k": 1, "x1": 1, "x2": 1, "y": null})", R"({"x1": 1, "x2": 1, "x3": 1, "x4": 1})"},
       {R"({"k": 1, "x1": 1, "x1": 1, "y": null})", R"({"k": 1, "x1": 1, "y": null, "y": null})",
        R"({"x1": 1, "x2": 1, "x3": 1, "x3": 1})", R"({"k": 1, "x1": 1, "x2": 1})"}});
  check(
      {R"({"type":"object","patternProperties":{"^[a-c]$":{}},"additionalProperties":false,"minProperties":3})",
       {R"({"c": 1, "a": 2, "b": 3})", R"({"c": 1, "c": 1, "a": 2, "b": 3})"},
       {R"({"c": 1, "a": 2, "a": 3})", R"({"c": 1, "a": 2})"}});
  check({R"({"type":"object","required":["a"],"minProperties":3,"maxProperties":4})",
         {R"({"a": 1, "x": 1, "y": 1})", R"({"a": 1, "x": 1, "x": 1, "y": 1})"},
         {R"({"a": 1, "x": 1, "x": 1})", R"({"a": 1, "v": 1, "w": 1, "x": 1, "y": 1})",
          R"({"a": 1, "x": 1})"}});
  // One property must not be a string, and stays like that.
  check({R"({"type":"object","not":{"additionalProperties":{"type":"string"}}})",
         {R"({"a": 1})", R"({"b": "", "a": 1})", R"({"a": "", "a": 1})", R"({"a": 1, "a": 2})"},
         {"{}", R"({"a": ""})", R"({"a": 1, "a": ""})"}});
  check({R"({"type":"object","properties":{"k":{}},"not":{"patternProperties":{"^[kx]":{"type":"string"}}}})",
         {R"({"k": 1, "x": ""})", R"({"x": 1, "y": ""})", R"({"x": "", "x": 1})"},
         {R"({"k": ""})", R"({"x": 1, "x": ""})", R"({"y": 1})"}});
  check({R"({"type":"object","not":{"propertyNames":{"maxLength":2}}})",
         {R"({"abc": 1})", R"({"abc": 1, "abc": 2, "a": 3})"},
         {R"({"ab": 1})", "{}"}});
  expect_error(ErrorKind::unsupported, {"#/allOf/0/minProperties"},
               [] { schema_grammar(R"({"type":"object","allOf":[{"minProperties":70}]})"); });
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

TEST(GrammarSchema, UnevaluatedPropertiesSeeWhatOtherSchemasSayOfTheSameObject) {
  check(
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"allOf":[{"properties":{"b":true}}],"unevaluatedProperties":false})",
       {"{}", R"({"a": 1, "b": 2})"},
       {R"({"a": 1, "c": 2})", R"({"a": "s"})"}});
  check(
      {R"({"type":"object","anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":2}},"required":["b"]}],"unevaluatedProperties":{"type":"null"}})",
       {R"({"a": 1})", R"({"b": 2})", R"({"a": 1, "b": 2})", R"({"b": 2, "a": null})",
        R"({"a": 1, "b": null})", R"({"a": 1, "c": null})"},
       {R"({"a": 1, "b": 3})", R"({"a": 2})", "{}", R"({"a": 1, "c": 1})"}});
  check({R"({"type":"object","allOf":[{"properties":{"a":true}},{"unevaluatedProperties":false}]})",
         {"{}"},
         {R"({"a": 1})"}});
  check({R"({"type":"object","not":{"not":{"properties":{"a":true}}},"unevaluatedProperties":false})",
         {"{}"},
         {R"({"a": 1})"}});
  check(
      {R"({"type":"object","if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"patternProperties":{"^x":true}},"unevaluatedProperties":false})",
       {"{}", R"({"a": 1})", R"({"a": 1, "x1": 2})"},
       {R"({"a": 2})", R"({"x1": 2})", R"({"a": 1, "y": 2})"}});
  check(
      {R"({"type":"object","dependentSchemas":{"a":{"properties":{"b":true}}},"properties":{"a":true},"unevaluatedProperties":false})",
       {"{}", R"({"a": 1})", R"({"a": 1, "b": 1})"},
       {R"({"b": 1})"}});
}

TEST(GrammarSchema, UnevaluatedItemsSeeWhatOtherSchemasSayOfTheSameArray) {
  check({R"({"type":"array","prefixItems":[{"type":"string"}],"unevaluatedItems":false})",
         {"[]", R"(["a"])"},
         {R"(["a", 1])", "[1]"}});
  check(
      {R"({"type":"array","allOf":[{"prefixItems":[true,{"type":"integer"}]}],"unevaluatedItems":{"type":"null"}})",
       {"[]", "[1, 2, null]", "[null]"},
       {"[1, 2, 3]", "[1, \"a\"]"}});
  check({R"({"type":"array","contains":{"type":"string"},"unevaluatedItems":{"type":"integer"}})",
         {R"(["a"])", R"([1, "a", 2, "b"])"},
         {"[]", "[1]", R"(["a", null])"}});
  check(
      {R"({"type":"array","allOf":[{"contains":{"multipleOf":2}},{"contains":{"multipleOf":3}}],"unevaluatedItems":{"multipleOf":5}})",
       {"[2, 3, 4, 5, 6]", "[6]", "[6, 25]"},
       {"[2, 3, 4, 7, 8]", "[2, 4]", "[5]"}});
}

TEST(GrammarSchema, DynamicReferencesMeanTheOutermostAnchor) {
  check(
      {R"({"$id":"https://example.com/strings","$ref":"list","$defs":{"s":{"$dynamicAnchor":"item","type":"string"},
            "list":{"$id":"list","type":"array","items":{"$dynamicRef":"#item"},"$defs":{"any":{"$dynamicAnchor":"item"}}}}})",
       {"[]", R"(["a", "b"])"},
       {"[1]"}});
  check(
      {R"({"$id":"https://example.com/both","type":"object","additionalProperties":false,"properties":{"free":{"$ref":"list"},"held":{"$ref":"numbers"}},
            "$defs":{"numbers":{"$id":"numbers","$ref":"list","$defs":{"n":{"$dynamicAnchor":"item","type":"number"}}},
            "list":{"$id":"list","type":"array","items":{"$dynamicRef":"#item"},"$defs":{"any":{"$dynamicAnchor":"item"}}}}})",
       {R"({"free": ["a", 1], "held": [1, 2.5]})"},
       {R"({"held": ["a"]})"}});
}

TEST(GrammarSchema, NegationsOfKeywordsForObjectsAndArrays) {
  check(
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"not":{"properties":{"a":true},"additionalProperties":{"type":"null"}}})",
       {R"({"a": 1, "b": 2})", R"({"b": null, "c": 1})", R"({"b": 1, "c": 2})"},
       {"{}", R"({"a": 1})", R"({"b": null})", R"({"a": 1, "b": null, "c": null})",
        R"({"b": 1, "b": null})"}});
  check({R"({"type":"object","not":{"patternProperties":{"^x":{"type":"integer"}}}})",
         {R"({"x": "s"})", R"({"a": 1, "xy": null})"},
         {"{}", R"({"x": 1})", R"({"a": "s"})"}});
  check({R"({"type":"object","properties":{"long":true},"not":{"propertyNames":{"maxLength":2}}})",
         {R"({"long": 1})", R"({"a": 1, "abc": 2})"},
         {"{}", R"({"ab": 1})"}});
  check({R"({"type":"integer","not":{"oneOf":[{"minimum":3},{"maximum":5}]}})", {"3", "4", "5"}, {"2", "6"}});
  check({R"({"type":"integer","not":{"if":{"minimum":3},"then":{"maximum":5},"else":{"minimum":1}}})",
         {"6", "0", "-4"},
         {"3", "5", "1"}});
  check({R"({"type":"array","not":{"contains":{"type":"string"}}})", {"[]", "[1, null]"}, {R"([1, "a"])"}});
  check({R"({"type":"array","not":{"contains":{"type":"string"},"minContains":2,"maxContains":3}})",
         {"[]", R"(["a"])", R"(["a", "b", "c", "d"])"},
         {R"(["a", 1, "b"])", R"(["a", "b", "c"])"}});
  check({R"({"type":"array","not":{"prefixItems":[{"type":"string"},{"type":"null"}]}})",
         {"[1]", R"(["a", 1])"},
         {"[]", R"(["a"])", R"(["a", null, 3])"}});
  check(
      {R"({"type":"object","not":{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}})",
       {R"({"a": 1})", R"({"c": 1})", R"({"c": 3, "a": 1, "b": 2})"},
       {"{}", R"({"a": 1, "b": 2})", R"({"c": 1, "d": 2})"}});
}

TEST(GrammarSchema, SeveralSchemasOfContainsAreCountedTogether) {
  check(
      {R"({"type":"array","items":{"type":"integer"},"allOf":[{"contains":{"minimum":5},"minContains":2},{"contains":{"multipleOf":2},"maxContains":1}]})",
       {"[5, 6]", "[7, 9, 2]", "[1, 5, 7, 4]"},
       {"[6, 8]", "[5, 2]", "[5, 7]", "[]"}});
  check({R"({"enum":[[1],["a",2],[]],"contains":{"type":"string"}})", {R"(["a", 2])"}, {"[1]", "[]"}});
}

TEST(GrammarSchema, Formats) {
  check(
      {R"({"format":"time","type":"string"})",
       {R"("23:59:60Z")", R"("15:59:60-08:00")", R"("01:29:60.25+01:30")", R"("05:44:60+05:45")",
        R"("23:59:59.123456+14:00")", R"("23:59:60-00:00")"},
       {R"("22:59:60Z")", R"("15:59:60+08:00")", R"("05:45:60+05:45")", R"("24:00:00Z")", R"("12:00:00")"}});
  check({R"({"format":"date-time","type":"string"})",
         {R"("1998-12-31T23:59:60Z")", R"("1998-06-30T15:59:60.5-08:00")", R"("1999-01-01T07:59:60+08:00")",
          R"("1998-07-01T00:14:60+00:15")", R"("2024-02-29t12:00:00z")"},
         {R"("1998-12-31T07:59:60+08:00")", R"("1998-12-30T23:59:60Z")", R"("1999-01-01T15:59:60-08:00")",
          R"("1998-11-30T23:59:60Z")", R"("2023-02-29T12:00:00Z")"}});
  check({R"({"format":"iri","type":"string"})",
         {R"("http://ƒøø.ßår/?∂éœ=πîx#πîüx")", R"("urn:a:b")"},
         {R"("âππ")", R"("http://a b")"}});
  check(
      {R"({"format":"idn-email","type":"string"})", {R"("실례@실례.테스트")", R"("a@b.c")"}, {R"("2962")"}});
}

TEST(GrammarSchema, WhatIsNotSupportedIsRefusedWithItsPath) {
  expect_error(ErrorKind::unsupported, {"#/properties/a/$recursiveRef"},
               [] { schema_grammar(R"({"properties":{"a":{"$recursiveRef":"#"}}})"); });
  expect_error(ErrorKind::unsupported, {"#/$schema", "example.com"},
               [] { schema_grammar(R"({"$schema":"https://example.com/own"})"); });
  expect_error(ErrorKind::unsupported, {"#/items/pattern", "lookbehind"},
               [] { schema_grammar(R"({"items":{"pattern":"(?<=a)word"}})"); });
  expect_error(ErrorKind::unsupported, {"#/properties/host/format", "'hostname'"},
               [] { schema_grammar(R"({"properties":{"host":{"format":"hostname"}}})"); });
  // For schemas derived for a negation, the location of the negated schema is reported.
  expect_error(ErrorKind::unsupported, {"#/properties/a/not/uniqueItems"}, [] {
    schema_grammar(
        R"({"properties":{"a":{"not":{"anyOf":[{"type":"null"},{"not":{"uniqueItems":true}}]}}}})");
  });
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

// Malformed keywords are rejected, because they would otherwise be ignored silently.
TEST(GrammarSchema, MalformedKeywordsAreRefused) {
  for (const char* value : {"5", "null", "\"true\"", "[1]"}) {
    for (const char* keyword : {"uniqueItems", "unevaluatedProperties", "unevaluatedItems"})
      expect_error(ErrorKind::input, {std::string("#/") + keyword},
                   [&] { schema_grammar(fmt::format(R"({{"{}":{}}})", keyword, value)); });
    if (*value != '[')
      expect_error(ErrorKind::input, {"#/prefixItems"},
                   [&] { schema_grammar(fmt::format(R"({{"prefixItems":{}}})", value)); });
  }
  expect_error(ErrorKind::unsupported, {"#/$dynamicRef"}, [] { schema_grammar(R"({"$dynamicRef":"x"})"); });
  expect_error(ErrorKind::unsupported, {"out of range"}, [] { schema_grammar(R"({"minimum":1e999})"); });
}

TEST(GrammarSchema, LargeBoundsHold) {
  const auto refused = [](const char* schema, ErrorKind kind, std::string_view part) {
    expect_error(kind, {part}, [&] { schema_grammar(schema); });
  };
  refused(R"({"type":"string","minLength":3000000,"maxLength":2000000})", ErrorKind::input, "no text");
  refused(R"({"type":"string","not":{"maxLength":3000000},"maxLength":2000000})", ErrorKind::input,
          "no text");
  refused(R"({"type":"string","minLength":1e12})", ErrorKind::unsupported, "#/minLength");
  refused(R"({"type":"array","contains":true,"minContains":1e12})", ErrorKind::unsupported, "#/contains");
  check({R"({"type":"string","maxLength":2147483647})", {R"("ab")"}, {"1"}});
}

TEST(GrammarSchema, SchemasThatLeadToThemselvesAreRefusedAtOnce) {
  const auto refused = [](const char* schema) {
    expect_error(ErrorKind::unsupported, {"only refer to themselves"}, [&] { schema_grammar(schema); });
  };
  refused(R"({"anyOf":[{"type":"string"},{"$ref":"#"}]})");
  refused(R"({"oneOf":[{"minLength":2,"$ref":"#"}],"maximum":3})");
  refused(
      R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}})");
  refused(R"({"if":{"type":"string"},"then":{"minLength":2},"else":{"$ref":"#"}})");
  // Using the same schema twice is not a cycle.
  check({R"({"allOf":[{"$ref":"#/$defs/a"},{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}],
             "$defs":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#"}}]}}})",
         {R"("ab")", R"(["a", ["b"]])"},
         {"1", "null", "[1]"}});
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
  for (const char* circle : {R"({"$ref":"#"})", R"({"anyOf":[{"$ref":"#"},{"$ref":"#"}]})"})
    expect_error(ErrorKind::unsupported, {"only refer to themselves"}, [&] { schema_grammar(circle); });
  // Every mask of an exponential pattern is found or rejected within the limit.
  const auto grammar = schema_grammar(R"({"type":"string","pattern":"^(a|a)*(a|aa)+(a*)*b{1,1000}$"})");
  Matcher matcher(grammar);
  std::vector<std::uint32_t> bits(matcher.mask_words());
  for (const char* text : {"\"", "aaaaaaaaaaaaaaa", "bbbb"}) {
    EXPECT_EQ(matcher.accept_text(text), std::string_view(text).size());
    matcher.mask(bits);
  }
}

// Lists that are compared with each other: a schema of a few megabytes could keep a processor busy for hours.
TEST(GrammarSchema, LongListsEndWithinTheTimeToCompile) {
  const auto list = [](int count, const char* item) {
    std::string result;
    for (int i = 0; i < count; ++i) result += (i > 0 ? "," : "") + fmt::format(fmt::runtime(item), i);
    return result;
  };
  const std::string names = "[" + list(300'000, "\"n{0}\"") + "]";
  const std::string others = "[" + list(300'000, "\"m{0}\"") + "]";
  GrammarLimits limits;
  limits.compile_time = std::chrono::milliseconds(1'000);
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& schema :
       {R"({"required":)" + names + "}", R"({"properties":{)" + list(150'000, "\"n{0}\":{{}}") + "}}",
        R"({"allOf":[{"enum":)" + names + R"(},{"enum":)" + others + "}]}",
        R"({"enum":)" + names + R"(,"not":{"enum":)" + others + "}}",
        R"({"type":"object","propertyNames":{"enum":)" + names + "}}",
        R"({"type":"array","uniqueItems":true,"items":{"enum":[)" + list(300'000, "{0}") + "]}}",
        R"({"allOf":[)" + list(200'000, R"({{"minLength":1}})") + "]}",
        R"({"oneOf":[)" + list(200'000, R"({{"const":{0}}})") + "]}",
        R"({"dependentRequired":{)" + list(100'000, R"("d{0}":["e{0}"])") + "}}"}) {
    try {
      const Grammar grammar({.kind = GrammarSource::Kind::json_schema, .text = schema, .choices = {}},
                            test_vocabulary().shared, limits);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::resource) << schema.substr(0, 60) << ": " << error.what();
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(3));
}

// The values of a schema take far more memory than its text, and negations copy what they negate.
TEST(GrammarSchema, MemoryIsBounded) {
  const auto repeated = [](int count, const std::string& item) {
    std::string result = item;
    for (int i = 1; i < count; ++i) result += "," + item;
    return result;
  };
  expect_error(ErrorKind::resource, {"more than 1000000 values"},
               [&] { schema_grammar(R"({"enum":[)" + repeated(1'500'000, "0") + "]}"); });
  std::string nested = R"({"enum":[)" + repeated(50'000, "0") + "]}";
  for (int depth = 0; depth < 150; ++depth) nested = R"({"not":)" + nested + "}";
  expect_error(ErrorKind::resource, {"negations", "1000000 values"}, [&] { schema_grammar(nested); });
  expect_error(ErrorKind::resource, {"#/not/oneOf", "1000000 values"},
               [&] { schema_grammar(R"({"not":{"oneOf":[)" + repeated(3'000, R"({"const":1})") + "]}}"); });
}

// Every definition has an identifier, and finding each base must not scan all of them.
TEST(GrammarSchema, ManyNamedDefinitionsAreFoundAtOnce) {
  std::string definitions;
  for (int i = 0; i < 60'000; ++i)
    definitions +=
        fmt::format(R"({}"d{}":{{"$id":"http://names/{}","type":"integer"}})", i > 0 ? "," : "", i, i);
  GrammarLimits limits;
  limits.compile_time = std::chrono::minutes(1);
  const Grammar grammar({.kind = GrammarSource::Kind::json_schema,
                         .text = R"({"$ref":"http://names/59999","$defs":{)" + definitions + "}}",
                         .choices = {}},
                        test_vocabulary().shared, limits);
  // A property may have the name of a keyword.
  const auto named = schema_grammar(
      R"({"properties":{"$id":{"$ref":"#/$defs/n"}},"required":["$id"],"$defs":{"n":{"type":"integer"}}})");
  EXPECT_TRUE(accepts(named, R"({"$id":5})"));
  EXPECT_FALSE(accepts(named, R"({"$id":"5"})"));
}

}  // namespace
}  // namespace sluice

#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "expect_error.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

TEST(Json, ParsesEveryKindOfValue) {
  const Json value = parse_json(R"( {"a": [1, -2, 3.5, true, null, "é\n\u00e9", {}], "b": {"c": []}} )", "t");
  EXPECT_EQ(value, Json::parse(R"({"a": [1, -2, 3.5, true, null, "é\né", {}], "b": {"c": []}})"));
  EXPECT_EQ(parse_json("7", "t"), Json(7));
}

TEST(Json, NamesThePlaceOfASyntaxError) {
  expect_error(ErrorKind::checkpoint, {"config.json", "byte 14, line 2"},
               [] { parse_json("{\"a\": 1,\n \"b\" 2}", "config.json"); });
  for (const char* broken : {"", " ", "{", "[1,", "{\"a\"}", "nul", "1 2", "{} {}", "[1,]", "NaN", "'a'",
                             "1e999", "\"\xff\"", "\"\\ud800\"", "// x\n1"}) {
    SCOPED_TRACE(broken);
    expect_error(ErrorKind::checkpoint, {"t: ", "invalid JSON at byte"}, [&] { parse_json(broken, "t"); });
  }
}

TEST(Json, RefusesDuplicateKeys) {
  expect_error(ErrorKind::checkpoint, {"t", "'k'", "twice"},
               [] { parse_json(R"([{"k": 1, "k": 1}])", "t"); });
  EXPECT_NO_THROW(parse_json(R"([{"k": {"k": 1}}, {"k": 1}])", "t"));
}

TEST(Json, BoundsDepthAndSize) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(128), "t"));
  expect_error(ErrorKind::input, {"deeper than 128"}, [&] {
    parse_json(nested(129), {"t", ErrorKind::input});
  });
  expect_error(ErrorKind::checkpoint, {"deeper"}, [&] { parse_json(std::string(1 << 20, '['), "t"); });
  expect_error(ErrorKind::checkpoint, {"5 bytes", "at most 4"},
               [&] { parse_json("12345", "t", {.bytes = 4}); });
}

TEST(Json, MessagesStayShort) {
  const std::string long_key(10000, 'k');
  try {
    parse_json("{\"" + long_key + "\":1,\"" + long_key + "\":1}", "t");
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 400u);
  }
}

TEST(Json, ReadsFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_json_file(folder.write("a.json", "{\"x\": 1}")).at("x"), 1);
  expect_error(ErrorKind::checkpoint, {"b.json"}, [&] { read_json_file(folder.write("b.json", "{")); });
  expect_error(ErrorKind::input, {"c.json"}, [&] { read_json_file(folder.path() / "c.json"); });
}

TEST(Json, TypedGetters) {
  const Json object = parse_json(
      R"({"t": true, "i": -3, "d": 1.5, "s": "x", "n": null, "is": [1, 2], "ds": [1, 2.5], "ss": ["a"]})",
      "t");
  EXPECT_TRUE(json_get<bool>(object, "t", "f"));
  EXPECT_EQ(json_get<int>(object, "i", "f"), -3);
  EXPECT_EQ(json_get<int64_t>(object, "i", "f"), -3);
  EXPECT_EQ(json_get<double>(object, "i", "f"), -3.0);
  EXPECT_EQ(json_get<double>(object, "d", "f"), 1.5);
  EXPECT_EQ(json_get<std::string>(object, "s", "f"), "x");
  EXPECT_EQ(json_get<std::vector<int>>(object, "is", "f"), (std::vector<int>{1, 2}));
  EXPECT_EQ(json_get<std::vector<double>>(object, "ds", "f"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(json_get<std::vector<std::string>>(object, "ss", "f"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(json_get_or<int>(object, "i", 9, "f"), -3);
  EXPECT_EQ(json_get_or<int>(object, "none", 9, "f"), 9);
  EXPECT_EQ(json_get_or<int>(object, "n", 9, "f"), 9);
  EXPECT_EQ(json_optional<int>(object, "n", "f"), std::nullopt);
}

TEST(Json, TypedGettersNameTheKey) {
  const Json object = parse_json(
      R"({"f": 1.0, "big": 9223372036854775808, "mid": 2147483648, "s": "x", "a": [1, "z"]})", "t");
  const auto get = [&]<class T>(const char* key, T) { json_get<T>(object, key, JsonSource("c.json")); };
  expect_error(ErrorKind::checkpoint, {"c.json", "'none'", "missing"}, [&] { get("none", 0); });
  expect_error(ErrorKind::checkpoint, {"c.json: 'f' is 1.0, expected a 64-bit integer"},
               [&] { get("f", 0); });
  expect_error(ErrorKind::checkpoint, {"9223372036854775808", "64-bit"}, [&] { get("big", int64_t{}); });
  expect_error(ErrorKind::checkpoint, {"2147483648", "32-bit"}, [&] { get("mid", 0); });
  expect_error(ErrorKind::checkpoint, {"'s' is \"x\", expected a number"}, [&] { get("s", 0.0); });
  expect_error(ErrorKind::checkpoint, {"'s'", "true or false"}, [&] { get("s", false); });
  expect_error(ErrorKind::checkpoint, {"'a' is an array, expected a string"},
               [&] { get("a", std::string()); });
  expect_error(ErrorKind::checkpoint, {"'a'[1] is \"z\""}, [&] { get("a", std::vector<int>()); });
  expect_error(ErrorKind::input, {"body is 1, expected an object"}, [] {
    json_get<int>(Json(1), "k", {"body", ErrorKind::input});
  });
}

}  // namespace
}  // namespace sluice

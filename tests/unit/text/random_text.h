// The texts of tools/golden/tokenizer.py, generated in the same way.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "source_dir.h"

namespace sluice::text {

inline std::string read_test_file(const std::string& name) {
  std::ifstream file(std::string(test_data() + "/text/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t below(std::uint64_t count) {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (z ^ z >> 31) % count;
  }

 private:
  std::uint64_t state_;
};

class RandomText {
 public:
  RandomText() {
    const Json json = parse_json(read_test_file("texts.json"), "texts.json");
    fragments_ = json_get<std::vector<std::string>>(json, "fragments", "texts.json");
    for (const Json& range : json.at("ranges")) ranges_.push_back({range.at(0), range.at(1)});
    batch = json.at("batch");
    id_lists = json.at("id_lists");
  }

  std::string operator()(std::uint64_t index) const {
    Random random(index);
    std::string text;
    const std::uint64_t parts = 1 + random.below(12);
    for (std::uint64_t part = 0; part < parts; ++part) {
      const std::uint64_t kind = random.below(8);
      if (kind < 5) {
        const std::string& fragment = fragments_[random.below(fragments_.size())];
        const std::uint64_t times = kind < 4 ? 1 : 1 + random.below(6);
        for (std::uint64_t i = 0; i < times; ++i) text += fragment;
      } else {
        const auto [low, high] = ranges_[random.below(ranges_.size())];
        const std::uint64_t count = 1 + random.below(8);
        for (std::uint64_t i = 0; i < count; ++i)
          append_utf8(text, static_cast<char32_t>(low + random.below(high - low + 1)));
      }
    }
    return text;
  }

  static std::vector<std::int32_t> ids(std::uint64_t index, std::int32_t size) {
    Random random(index);
    std::vector<std::int32_t> ids(1 + random.below(16));
    for (std::int32_t& id : ids)
      id = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(size)));
    return ids;
  }

  std::uint64_t batch = 0, id_lists = 0;

 private:
  std::vector<std::string> fragments_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges_;
};

class Fnv1a {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  }
  void add(std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) value_ = (value_ ^ (number >> shift & 0xff)) * 0x100000001B3;
  }
  std::string hex() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
};

}  // namespace sluice::text

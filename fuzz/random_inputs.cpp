// Runs a fuzzer without libFuzzer: seeds are mutated at random, as bytes and as JSON values, for some
// seconds.
// Usage: fuzz_x SECONDS SEEDS DICTIONARY [FIRST_NUMBER]
// Input n is the same in every run, and the number of the last one is in the file named at the start.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) {
  return limit == 0 ? 0 : random() % limit;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> read_seeds(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) seeds.push_back(contents(path));
  return seeds;
}

// libFuzzer's format: one quoted word per line. Of its escapes, \" and \\ are interpreted, others are kept.
std::vector<std::string> read_words(const std::filesystem::path& path) {
  std::vector<std::string> words = {"null", "true",     "-1", "0",        "1e308", "1.5",
                                    "\"\"", "[]",       "{}", "[[[[[[[[", ",",     "2147483648",
                                    ":",    "\xF0\x9F", "}",  "\\u0000",  "\"x\""};
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 2 || line.front() != '"') continue;
    std::string word;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      if (line[i] == '\\' && (line[i + 1] == '"' || line[i + 1] == '\\')) ++i;
      word += line[i];
    }
    words.push_back(word);
  }
  return words;
}

// The end of the JSON value that begins at `at`, judging by brackets and quotes.
std::size_t end_of_value(const std::string& text, std::size_t at) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      ++depth;
    } else if (!quoted && (c == '}' || c == ']' || c == ',')) {
      if (c != ',' && --depth < 0) return i;
      if (depth == 0) return c == ',' ? i : i + 1;
    }
  }
  return text.size();
}

// Replaces a value after a colon by a word or by a value of another input.
void change_value(std::string& text, const std::string& other, const std::vector<std::string>& words,
                  Random& random) {
  const std::size_t colon = text.find(':', below(random, text.size()));
  if (colon == text.npos) return;
  std::string value = words[below(random, words.size())];
  const std::size_t theirs = other.find(':', below(random, other.size()));
  if (random() % 2 == 0 && theirs != other.npos)
    value = other.substr(theirs + 1, end_of_value(other, theirs + 1) - theirs - 1);
  text.replace(colon + 1, end_of_value(text, colon + 1) - colon - 1, value);
}

void change_bytes(std::string& text, const std::string& other, const std::vector<std::string>& words,
                  Random& random) {
  const std::size_t at = below(random, text.size() + 1);
  const std::size_t length = below(random, 1 + std::min<std::size_t>(32, text.size() - at));
  switch (random() % 5) {
    case 0:
      text.insert(at, words[below(random, words.size())]);
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(at, length));
      break;
    case 3:
      if (at < text.size()) text[at] = static_cast<char>(random());
      break;
    default:
      text.insert(at, other.substr(below(random, other.size()), length));
  }
}

std::string input_number(std::uint64_t number, const std::vector<std::string>& seeds,
                         const std::vector<std::string>& words) {
  Random random(number);
  std::string text = seeds[below(random, seeds.size())];
  const std::string& other = seeds[below(random, seeds.size())];
  for (std::size_t change = random() % 6; change > 0; --change)
    (random() % 3 == 0 ? change_bytes : change_value)(text, other, words, random);
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return fmt::print("usage: {} SECONDS SEEDS DICTIONARY [FIRST]\n", arguments[0]), 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(arguments[1]));
  const std::vector<std::string> seeds = read_seeds(arguments[2]);
  const std::vector<std::string> words = read_words(arguments[3]);
  if (seeds.empty()) return fmt::print("there are no seeds in {}\n", arguments[2]), 2;
  const std::uint64_t first = count > 4 ? std::stoull(arguments[4]) : 0;
  const std::string last_path = std::string(arguments[0]) + ".last";
  fmt::print("the number of the last input is kept in {}\n", last_path);
  std::uint64_t number = first;
  for (; std::chrono::steady_clock::now() < end; ++number) {
    std::ofstream(last_path) << number;
    const std::string text = input_number(number, seeds, words);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  }
  fmt::print("{} inputs\n", number - first);
}

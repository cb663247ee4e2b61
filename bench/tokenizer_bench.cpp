// Encoding and decoding speed on one core, in bytes of text per second.
// Usage: bench_tokenizer [--text=FILE] [Google Benchmark flags]; the file replaces the generated English
// text.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "text/tokenizer.h"
#include "unit/text/random_text.h"

namespace sluice::text {
namespace {

std::string english_text() {
  constexpr const char* kWords[] = {
      "once",   "upon",  "a",     "time",   "there", "was",   "little", "girl",  "named",   "Lily",
      "who",    "loved", "to",    "play",   "in",    "the",   "big",    "green", "park",    "with",
      "her",    "dog",   "and",   "didn't", "see",   "that",  "sunny",  "day",   "so",      "they",
      "walked", "home",  "found", "shiny",  "stone", "under", "tall",   "trees", "because", "\"Hello!\""};
  Random random(1);
  std::string text;
  while (text.size() < 1'000'000) {
    text += kWords[random.below(std::size(kWords))];
    const std::uint64_t end = random.below(12);
    text += end == 0 ? ".\n" : end == 1 ? ", " : " ";
  }
  return text;
}

// All scripts, emoji, code and whitespace; few words occur twice.
std::string mixed_text() {
  const RandomText random_text;
  std::string text;
  for (std::uint64_t i = 0; text.size() < 1'000'000; ++i) text += random_text(i);
  return text;
}

void encode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}

void decode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.decode(ids));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Removes --name=VALUE from the arguments; empty if it is missing.
std::string take_flag(int& argc, char** argv, const std::string& name) {
  const std::string prefix = "--" + name + "=";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!argument.starts_with(prefix)) continue;
    std::copy(argv + i + 1, argv + argc, argv + i);
    --argc;
    return argument.substr(prefix.size());
  }
  return "";
}

int run(int argc, char** argv) {
  const std::string text_path = take_flag(argc, argv, "text");
  const std::string tokenizer_path = take_flag(argc, argv, "tokenizer");
  const std::string english = text_path.empty() ? english_text() : read_file(text_path);
  const std::string mixed = mixed_text();
  std::vector<std::pair<std::string, Tokenizer>> tokenizers;
  if (!tokenizer_path.empty()) {
    tokenizers.emplace_back("file", Tokenizer::parse(read_file(tokenizer_path)));
  } else {
    for (const char* name : {"qwen35", "deepseek", "gpt2", "flags"})
      tokenizers.emplace_back(name, Tokenizer::parse(read_test_file(std::string(name) + ".tokenizer.json")));
  }
  for (const auto& [name, tokenizer] : tokenizers) {
    for (const std::string* text : {&english, &mixed}) {
      const std::string suffix = "/" + name + (text == &english ? "/english" : "/mixed");
      const auto bench = [&tokenizer = tokenizer, text](auto function) {
        return [&tokenizer, text, function](benchmark::State& state) { function(state, tokenizer, *text); };
      };
      benchmark::RegisterBenchmark(("encode" + suffix).c_str(), bench(encode))->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("decode" + suffix).c_str(), bench(decode))->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace sluice::text

int main(int argc, char** argv) {
  return sluice::text::run(argc, argv);
}

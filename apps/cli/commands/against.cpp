#include "commands/against.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "sluice/error.h"
#include "sluice/random_model.h"
#include "terminal/output.h"

namespace sluice::cli {

namespace {

constexpr int kLeastTurns = 5;

// A file that goes with its owner.
class TemporaryFile {
 public:
  TemporaryFile() : path_(std::filesystem::temp_directory_path() / fmt::format("sluice-{}.gguf", getpid())) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) c == '\'' ? result += "'\\''" : result += c;
  return result + "'";
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  char block[4096];
  for (std::size_t n = 0; pipe != nullptr && (n = std::fread(block, 1, sizeof(block), pipe.get())) > 0;)
    text.append(block, n);
  return text;
}

struct Speeds {
  std::vector<double> prefill;
  std::vector<double> decode;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_peer(const std::string& command, Speeds& speeds) {
  const auto rows = nlohmann::json::parse(output_of(command), nullptr, false);
  if (!rows.is_array() || rows.empty())
    throw Error(ErrorKind::input, fmt::format("'{}' printed no measurements", command));
  for (const auto& row : rows)
    (row.value("n_gen", 0) > 0 ? speeds.decode : speeds.prefill).push_back(row.value("avg_ts", 0.0));
}

Figure figure_of(const char* what, const std::string& geometry, const std::vector<double>& ours,
                 const std::vector<double>& theirs) {
  const auto [low, high] = std::minmax_element(ours.begin(), ours.end());
  return {.what = fmt::format("{}, {} at 4 bits", what, geometry),
          .median = fmt::format("{:.1f}", median(ours)),
          .low = fmt::format("{:.1f}", *low),
          .high = fmt::format("{:.1f}", *high),
          .unit = "tok/s",
          .peer = fmt::format("llama.cpp {:.1f}", median(theirs))};
}

void print(const char* what, const std::vector<double>& ours, const std::vector<double>& theirs) {
  if (ours.empty() || theirs.empty()) return;
  fmt::print("{:8} {:10.1f} {:12.1f} {:8.2f}\n", what, median(ours), median(theirs),
             median(ours) / median(theirs));
}

}  // namespace

void run_against(Engine& engine, const SideBySide& what, const ModelBenchOptions& options,
                 const BenchOutput& output) {
  constexpr std::string_view kKnown = "llama-bench=";
  if (!what.peer.starts_with(kKnown) || what.geometry.empty() || options.batch != 1)
    throw Error(ErrorKind::input,
                "--against takes llama-bench=PATH, and with it --geometry and one sequence are needed");
  const int threads =
      what.threads != 0 ? what.threads : static_cast<int>(std::thread::hardware_concurrency());
  const TemporaryFile file;
  write_random_gguf(what.geometry, file.path());
  const std::string command = fmt::format(
      "{} -m {} -t {} -p {} -n {} -d {} -r 1 -o json 2>/dev/null", quoted(what.peer.substr(kKnown.size())),
      quoted(file.path().string()), threads, options.prompt, options.generate, options.depth);
  Speeds ours;
  Speeds theirs;
  ModelBenchResult last;
  for (int turn = 0; turn < std::max(kLeastTurns, options.repetitions); ++turn) {
    ModelBenchOptions once = options;
    once.repetitions = 1;
    last = bench_model(engine, once);
    if (options.prompt > 0) ours.prefill.push_back(last.prefill_tokens_per_second);
    if (options.generate > 0) ours.decode.push_back(last.decode_tokens_per_second);
    add_peer(command, theirs);
  }
  if (!output.csv.empty()) {
    std::vector<Figure> figures;
    if (!ours.prefill.empty())
      figures.push_back(figure_of("prefill", what.geometry, ours.prefill, theirs.prefill));
    if (!ours.decode.empty())
      figures.push_back(figure_of("decode", what.geometry, ours.decode, theirs.decode));
    append_figures(
        output.csv,
        fmt::format("{}, reads {:.1f} GB/s", engine.backend_description(), last.peak_gigabytes_per_second),
        figures);
  }
  if (output.json) {
    const auto row = [](const std::vector<double>& a, const std::vector<double>& b) {
      return nlohmann::ordered_json{
          {"ours", median(a)}, {"theirs", median(b)}, {"ratio", median(b) > 0 ? median(a) / median(b) : 0}};
    };
    const nlohmann::ordered_json result{{"backend", engine.backend_description()},
                                        {"turns", std::max(ours.prefill.size(), ours.decode.size())},
                                        {"peak_gb_per_s", last.peak_gigabytes_per_second},
                                        {"prefill_tok_per_s", row(ours.prefill, theirs.prefill)},
                                        {"decode_tok_per_s", row(ours.decode, theirs.decode)}};
    return print_json(result);
  }
  fmt::print("{}; this machine reads {:.1f} GB/s; medians of {} turns\n", engine.backend_description(),
             last.peak_gigabytes_per_second, std::max(ours.prefill.size(), ours.decode.size()));
  fmt::print("{:8} {:>10} {:>12} {:>8}\n", "tok/s", "sluice", "llama-bench", "ratio");
  print("prefill", ours.prefill, theirs.prefill);
  print("decode", ours.decode, theirs.decode);
}

}  // namespace sluice::cli

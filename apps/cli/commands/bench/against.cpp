#include "commands/bench/against.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "sluice/error.h"
#include "sluice/random_model.h"
#include "terminal/output.h"

namespace sluice::cli::commands::bench {

namespace {

constexpr int kLeastTurns = 5;

// A file that is removed by its owner's destructor.
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
  const auto middle = values.begin() + (values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

constexpr std::string_view kOneSequence = "llama-bench=";
constexpr std::string_view kSequences = "llama-batched-bench=";

// Adds what llama-bench printed: a list of measurements with their repetitions.
void add_list(const nlohmann::json& rows, Speeds& speeds) {
  for (const auto& row : rows) {
    const auto samples = row.value("samples_ts", std::vector<double>());
    auto& to = row.value("n_gen", 0) > 0 ? speeds.decode : speeds.prefill;
    to.insert(to.end(), samples.begin(), samples.end());
  }
}

void add_peer(const std::string& command, Speeds& speeds) {
  const std::string printed = output_of(command);
  const std::size_t before = speeds.decode.size() + speeds.prefill.size();
  const auto rows = nlohmann::json::parse(printed, nullptr, false);
  if (rows.is_array()) add_list(rows, speeds);
  // llama-batched-bench prints a JSON line among others.
  std::istringstream lines(printed);
  for (std::string line; !rows.is_array() && std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_object() && row.contains("speed_tg")) speeds.decode.push_back(row.at("speed_tg"));
  }
  if (speeds.decode.size() + speeds.prefill.size() == before)
    throw Error(ErrorKind::input, fmt::format("'{}' printed no measurements", command));
}

// The peer's command for `repetitions` of the same measurement.
std::string peer_command(const SideBySide& what, const ModelBenchOptions& options,
                         const std::filesystem::path& file, int repetitions) {
  const int threads =
      what.threads != 0 ? what.threads : static_cast<int>(std::thread::hardware_concurrency());
  const std::string program = quoted(what.peer.substr(what.peer.find('=') + 1));
  const std::string model = quoted(file.string());
  if (options.batch == 1)
    return fmt::format("{} -m {} -t {} -p {} -n {} -d {} -r {} -o json 2>/dev/null", program, model, threads,
                       options.prompt, options.generate, options.depth, repetitions);
  const std::int64_t depth = std::max<std::int64_t>(options.depth, 1);  // the peer needs a prompt
  return fmt::format("{} -m {} -t {} -c {} -npp {} -ntg {} -npl {} --output-format jsonl 2>/dev/null",
                     program, model, threads, options.batch * (depth + options.generate), depth,
                     options.generate, options.batch);
}

Figure figure_of(const std::string& what, const SideBySide& side, const std::vector<double>& ours,
                 const std::vector<double>& theirs) {
  const auto [low, high] = std::minmax_element(ours.begin(), ours.end());
  return {.what = fmt::format("{}, {} at {} bits", what, side.geometry, side.bits),
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
                 const Output& output) {
  const bool many = options.batch > 1;
  if (what.geometry.empty() || !what.peer.starts_with(many ? kSequences : kOneSequence) ||
      (many && options.prompt > 0))
    throw Error(
        ErrorKind::input,
        "--against takes llama-bench=PATH, or llama-batched-bench=PATH where sequences are decoded together "
        "(-b, with -p 0), and needs --geometry");
  const TemporaryFile file;
  write_random_gguf(what.geometry, what.bits, file.path());
  const int turns = std::max(kLeastTurns, options.repetitions);
  Speeds ours;
  Speeds theirs;
  ModelBenchResult last;
  for (int turn = 0; turn < turns; ++turn) {
    ModelBenchOptions once = options;
    once.repetitions = 1;
    last = bench_model(engine, once);
    if (options.prompt > 0) ours.prefill.push_back(last.prefill_tokens_per_second);
    if (options.generate > 0) ours.decode.push_back(last.decode_tokens_per_second);
    // At a depth the peer reads a prompt for minutes in each run, so all its repetitions run in the middle of
    // ours.
    if (many || options.depth == 0)
      add_peer(peer_command(what, options, file.path(), 1), theirs);
    else if (turn == turns / 2)
      add_peer(peer_command(what, options, file.path(), turns), theirs);
  }
  if (!output.csv.empty()) {
    std::vector<Figure> figures;
    if (!ours.prefill.empty()) figures.push_back(figure_of("prefill", what, ours.prefill, theirs.prefill));
    if (!ours.decode.empty()) figures.push_back(figure_of("decode", what, ours.decode, theirs.decode));
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
    return terminal::print_json(result);
  }
  fmt::print("{}; this machine reads {:.1f} GB/s; medians of {} turns\n", engine.backend_description(),
             last.peak_gigabytes_per_second, std::max(ours.prefill.size(), ours.decode.size()));
  fmt::print("{:8} {:>10} {:>12} {:>8}\n", "tok/s", "sluice", "llama-bench", "ratio");
  print("prefill", ours.prefill, theirs.prefill);
  print("decode", ours.decode, theirs.decode);
}

}  // namespace sluice::cli::commands::bench

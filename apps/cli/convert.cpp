// sluice convert: a Hugging Face checkpoint to the MLX format.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "sluice/convert.h"

namespace sluice::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string in;
  std::string out;
  ConvertOptions convert;
  bool dense = false;
  bool pack = false;
  bool json = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A line that rewrites itself, on a terminal only, once the work has taken a second.
class ProgressBar {
 public:
  ~ProgressBar() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }

  void operator()(const ConvertProgress& progress) {
    if (!terminal_ || seconds_since(start_) < 1 || (shown_ && seconds_since(last_) < 0.1)) return;
    constexpr int kWidth = 30;
    const double part =
        static_cast<double>(progress.parameters_done) / static_cast<double>(progress.parameters);
    const int filled = static_cast<int>(part * kWidth);
    fmt::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {:3.0f} %  {}", "", filled, "", kWidth - filled, 100 * part,
               progress.tensor);
    std::fflush(stderr);
    shown_ = true;
    last_ = Clock::now();
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_;
  bool shown_ = false;
};

void pack(const Options& options) {
  const auto start = Clock::now();
  {
    ProgressBar bar;
    pack_experts(options.in, options.out, [&bar](const ConvertProgress& progress) { bar(progress); });
  }
  if (!options.json) fmt::print("{}: experts packed in {:.1f} s\n", options.out, seconds_since(start));
}

void run(Options& options) {
  if (options.pack) return pack(options);
  const auto start = Clock::now();
  options.convert.quantize = !options.dense;
  ConvertSummary summary;
  {
    ProgressBar bar;
    summary = convert_checkpoint(options.in, options.out, options.convert,
                                 [&bar](const ConvertProgress& progress) { bar(progress); });
  }
  const double seconds = seconds_since(start);
  const double bits = 8 * static_cast<double>(summary.bytes_out) / static_cast<double>(summary.parameters);
  const double gigabytes_in = static_cast<double>(summary.bytes_in) / 1e9;
  if (options.json) {
    const nlohmann::ordered_json json{{"tensors", summary.tensors},
                                      {"quantized_modules", summary.quantized},
                                      {"parameters", summary.parameters},
                                      {"bits_per_weight", bits},
                                      {"bytes_in", summary.bytes_in},
                                      {"bytes_out", summary.bytes_out},
                                      {"shards", summary.shards},
                                      {"seconds", seconds},
                                      {"gigabytes_per_second", gigabytes_in / seconds}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{}: {} tensors, {:.3f} bits a weight, {:.3g} GB from {:.3g} GB in {:.1f} s ({:.2f} GB/s)\n",
             options.out, summary.tensors, bits, static_cast<double>(summary.bytes_out) / 1e9, gigabytes_in,
             seconds, gigabytes_in / seconds);
}

}  // namespace

void add_convert(Parser& parser) {
  auto options = std::make_shared<Options>();
  ConvertOptions& convert = options->convert;
  Command command = parser.add("convert", "Turn a Hugging Face checkpoint into an MLX one");
  command.required("IN", options->in, "Folder with config.json and *.safetensors in BF16, F16, F32 or FP8");
  command.required("OUT", options->out, "Folder to make; it appears when it is complete");
  command.option("--bits", convert.bits, "Bits a quantised weight: 2, 3, 4, 5, 6 or 8");
  command.option("--group-size", convert.group_size, "Weights that share a scale: 32, 64 or 128");
  command.option("--mixed", convert.mixed,
                 "Few bits, but more where they matter: mixed_2_6, mixed_3_4, mixed_3_6 or mixed_4_6");
  command.option("--dtype", convert.dtype,
                 "Type of scales and dense weights: bfloat16, float16 or float32; default: the model's");
  command.flag("--no-quantize", options->dense, "Only rename and rearrange, all weights dense");
  command.flag(
      "--pack-experts", options->pack,
      "Only rearrange a checkpoint that runs, so that each expert is one aligned read (see --memory of run)");
  command.option("--threads", convert.threads, "CPU threads; 0: one a core");
  command.flag("--json", options->json, "Machine-readable summary");
  command.footer(
      "The result equals that of mlx_lm.convert bit for bit, and mlx-lm can load it. Routers keep 8 bits.\n"
      "Models: qwen3_5_moe, qwen3_5, qwen3_next, qwen3_moe, deepseek_v3 (from FP8 too).\n"
      "Memory stays small whatever the model's size; the disk must hold the result, about bits/16 of BF16.\n"
      "Example: sluice convert Qwen3.6-35B-A3B qwen3.6-35b-4bit --bits 4 --group-size 64");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli

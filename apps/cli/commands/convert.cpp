// sluice convert: converts a Hugging Face checkpoint to the MLX format.
#include <fmt/core.h>

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/model.h"
#include "sluice/convert.h"
#include "terminal/output.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

using Clock = std::chrono::steady_clock;

struct ConvertArguments {
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

// Shows the progress; throws at the next tensor after an interrupt.
std::function<void(const ConvertProgress&)> follow(terminal::Progress& progress) {
  terminal::note_interrupts();
  return [&progress](const ConvertProgress& now) {
    terminal::stop_if_interrupted("interrupted; nothing was written");
    progress.update(now.parameters_done, now.parameters, std::string(now.tensor));
  };
}

void pack(const ConvertArguments& options) {
  const auto start = Clock::now();
  {
    terminal::Progress progress("packing");
    pack_experts(options.in, options.out, follow(progress));
  }
  const double seconds = seconds_since(start);
  if (options.json)
    return terminal::print_json({{"out", options.out}, {"packed_experts", true}, {"seconds", seconds}});
  fmt::print("{}: experts packed in {:.1f} s\n", terminal::printable(options.out), seconds);
}

void run(ConvertArguments& options) {
  if (options.pack) return pack(options);
  const auto start = Clock::now();
  options.convert.quantize = !options.dense;
  ConvertSummary summary;
  {
    terminal::Progress progress("converting");
    summary = convert_checkpoint(options.in, options.out, options.convert, follow(progress));
  }
  const double seconds = seconds_since(start);
  const double bits = 8 * static_cast<double>(summary.bytes_out) / static_cast<double>(summary.parameters);
  const double gigabytes_in = static_cast<double>(summary.bytes_in) / 1e9;
  if (options.json) {
    const nlohmann::ordered_json json{{"out", options.out},
                                      {"tensors", summary.tensors},
                                      {"quantized_modules", summary.quantized},
                                      {"parameters", summary.parameters},
                                      {"bits_per_weight", bits},
                                      {"bytes_in", summary.bytes_in},
                                      {"bytes_out", summary.bytes_out},
                                      {"shards", summary.shards},
                                      {"seconds", seconds},
                                      {"gb_per_s", gigabytes_in / seconds}};
    return terminal::print_json(json);
  }
  fmt::print("{}: {} tensors, {:.3f} bits per weight, {:.3g} GB from {:.3g} GB in {:.1f} s ({:.2f} GB/s)\n",
             terminal::printable(options.out), summary.tensors, bits,
             static_cast<double>(summary.bytes_out) / 1e9, gigabytes_in, seconds, gigabytes_in / seconds);
}

}  // namespace

void add_convert(Parser& parser) {
  auto options = std::make_shared<ConvertArguments>();
  ConvertOptions& convert = options->convert;
  Command command = parser.add("convert", "Convert a Hugging Face checkpoint to the MLX format");
  command.required("IN", options->in, "Folder with config.json and *.safetensors in BF16, F16, F32 or FP8");
  command.required("OUT", options->out, "Folder to create; it appears when it is complete");
  command.option("--bits", convert.bits, "Bits per quantised weight: 2, 3, 4, 5, 6 or 8", {2, 8});
  command.option("--group-size", convert.group_size, "Weights that share a scale: 32, 64 or 128", {32, 128});
  command.choice("--mixed", convert.mixed, convert_recipes(),
                 "Few bits per weight, with more where they matter");
  command.choice("--dtype", convert.dtype, {"bfloat16", "float16", "float32"},
                 "Type of scales and dense weights; default: the model's");
  command.flag("--no-quantize", options->dense, "Only rename and rearrange; all weights stay dense");
  command.flag(
      "--pack-experts", options->pack,
      "Only rearrange a checkpoint, so that each expert is one aligned read (for 'sluice run --memory')");
  options::add_threads(command, convert.threads);
  command.flag("--json", options->json, options::kJsonMeaning);
  command.note(
      "The result is bit for bit that of mlx_lm.convert, and mlx-lm can load it; routers keep 8 bits. "
      "Supported models: "
      "qwen3_5_moe, qwen3_5, qwen3_next, qwen3_moe, deepseek_v3 (from FP8 too); GGUF files are not "
      "supported. Memory use stays small whatever the model's size; the disk must hold the result, about "
      "bits/16 of the size in BF16.");
  command.example("sluice convert Qwen3.6-35B-A3B qwen3.6-35b-4bit --bits 4 --group-size 64",
                  "convert to four bits per weight");
  command.example("sluice convert --pack-experts qwen3.6-35b-4bit packed",
                  "prepare a checkpoint for reading experts from disk");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands

#include "sluice/convert.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "base/files/output_folder.h"
#include "base/integer_cast.h"
#include "base/thread_pool.h"
#include "checkpoint/config.h"
#include "convert/model_plan.h"
#include "convert/other_files.h"
#include "convert/quantization_rules.h"
#include "convert/row_reader.h"
#include "convert/shard_writer.h"
#include "quant/affine.h"

namespace sluice {
namespace convert {
namespace {

using checkpoint::Config;
using checkpoint::FileDType;
using checkpoint::TensorFiles;

// Rows are converted in parts of about this many output bytes: large writes, little memory.
constexpr size_t kPartBytes = size_t{16} << 20;

// mlx-lm looks only in these two places, so the types are kept if `dtype` is elsewhere.
std::optional<FileDType> target_type(const Config& config, const std::string& asked) {
  std::string name = asked;
  if (name.empty()) name = json_get_or<std::string>(config.root(), "torch_dtype", "", config.where());
  if (const Json* text = json_find(config.root(), "text_config", config.where()); name.empty() && text)
    name = json_get_or<std::string>(*text, "dtype", "", config.where() + ": 'text_config'");
  if (name == "bfloat16") return FileDType::bf16;
  if (name == "float16") return FileDType::f16;
  if (name == "float32") return FileDType::f32;
  return std::nullopt;
}

checkpoint::Fp8Blocks fp8_blocks(const Config& config) {
  const checkpoint::QuantizationPlan plan(config.root(), config.where());
  if (plan.globals())
    fail(ErrorKind::unsupported,
         "{}: the checkpoint is quantised to {} bits already, expected BF16, F16, F32 or FP8 weights",
         config.where(), plan.globals()->bits);
  return plan.fp8().value_or(checkpoint::Fp8Blocks());
}

// Streams the parameters one by one.
class Conversion {
 public:
  Conversion(ShardWriter& writer, checkpoint::Fp8Blocks blocks, ThreadPool& pool)
      : writer_(writer), blocks_(blocks), pool_(pool), scratch_(to_size(pool.size())) {}

  void write(const Parameter& parameter) {
    const RowReader reader(parameter, blocks_);
    parameter.quant ? write_quantized(parameter, reader) : write_dense(parameter, reader);
    for (const Piece& piece : parameter.pieces) files::release_pages(piece.tensor->data);
  }

 private:
  // Calls convert(row, its bytes, row within the part) for every row, and flush(rows) after each part.
  template <class Convert, class Flush>
  void in_parts(const Parameter& parameter, const RowReader& reader, size_t row_bytes, Convert&& convert,
                Flush&& flush) {
    const int64_t rows = parameter.rows();
    const int64_t part = std::clamp<int64_t>(static_cast<int64_t>(kPartBytes / row_bytes), 1, rows);
    out_.resize(to_size(part) * row_bytes);
    for (int64_t first = 0; first < rows; first += part) {
      const int64_t count = std::min(part, rows - first);
      pool_.parallel_for(0, count, 1, [&](int64_t begin, int64_t end, int worker) {
        for (int64_t i = begin; i < end; ++i)
          convert(first + i, reader.row(first + i, scratch_[worker]), out_.data() + to_size(i) * row_bytes);
      });
      flush(std::span<const std::byte>(out_).first(to_size(count) * row_bytes));
    }
  }

  void write_dense(const Parameter& parameter, const RowReader& reader) {
    const size_t row_bytes = reader.row_bytes();
    in_parts(
        parameter, reader, row_bytes,
        [row_bytes](int64_t, const std::byte* row, std::byte* out) { std::copy_n(row, row_bytes, out); },
        [&](std::span<const std::byte> part) { writer_.write(parameter.name, part); });
  }

  void write_quantized(const Parameter& parameter, const RowReader& reader) {
    const quant::AffineFormat format{parameter.quant->bits, parameter.quant->group_size};
    const quant::ValueRows one{reader.dtype(), 1, parameter.columns()};
    const size_t words_bytes = to_size(parameter.columns() * format.bits / 8);
    const size_t scale_bytes = reader.row_bytes() / to_size(format.group_size);
    scales_.resize(to_size(parameter.rows()) * scale_bytes);
    biases_.resize(scales_.size());
    in_parts(
        parameter, reader, words_bytes,
        [&](int64_t row, const std::byte* values, std::byte* words) {
          const size_t at = to_size(row) * scale_bytes;
          quant::encode_affine(format, one, values, words, scales_.data() + at, biases_.data() + at);
        },
        [&](std::span<const std::byte> part) { writer_.write(parameter.name, part); });
    writer_.write(parameter.module() + ".scales", scales_);
    writer_.write(parameter.module() + ".biases", biases_);
  }

  ShardWriter& writer_;
  checkpoint::Fp8Blocks blocks_;
  ThreadPool& pool_;
  std::vector<RowReader::Scratch> scratch_;  // one per worker
  std::vector<std::byte> out_;
  std::vector<std::byte> scales_;
  std::vector<std::byte> biases_;
};

uint64_t count(const Parameter& parameter) {
  return static_cast<uint64_t>(parameter.rows()) * parameter.columns();
}

}  // namespace
}  // namespace convert

ConvertSummary convert_checkpoint(const std::filesystem::path& in, const std::filesystem::path& out,
                                  const ConvertOptions& options,
                                  const std::function<void(const ConvertProgress&)>& progress) {
  using namespace convert;
  check_options(options);
  const Config config(in);
  const models::ConversionRules& rules = models::family_of(config).conversion;
  const checkpoint::Fp8Blocks blocks = fp8_blocks(config);
  const TensorFiles files(in);
  Source source(files, blocks);
  std::vector<Parameter> parameters = plan_model(source, config, rules, target_type(config, options.dtype));
  Json quantization;
  if (options.quantize)
    quantization = assign_quantization(parameters, rules, config.get<int64_t>("num_hidden_layers"), options);

  ConvertSummary summary{.bytes_in = source.bytes_taken()};
  std::vector<checkpoint::TensorInfo> tensors;
  for (const Parameter& parameter : parameters) {
    for (checkpoint::TensorInfo& tensor : stored_tensors(parameter)) tensors.push_back(std::move(tensor));
    summary.parameters += count(parameter);
    summary.quantized += parameter.quant ? 1 : 0;
  }
  files::OutputFolder folder(out);
  ShardWriter writer(folder.path(), tensors, options.max_shard_bytes);
  summary.tensors = tensors.size();
  summary.shards = writer.shards();
  summary.bytes_out = writer.total_bytes();
  folder.require_space(summary.bytes_out);

  const int cores = to_int(std::max(1U, std::thread::hardware_concurrency()));
  ThreadPool pool(options.threads > 0 ? options.threads : cores);
  Conversion conversion(writer, blocks, pool);
  uint64_t done = 0;
  for (const Parameter& parameter : parameters) {
    if (progress) progress({parameter.name, done, summary.parameters});
    conversion.write(parameter);
    done += count(parameter);
  }
  writer.finish(summary.parameters);
  write_config(in, folder.path(), config.root(), quantization);
  copy_text_files(in, folder.path());
  folder.commit();
  return summary;
}

}  // namespace sluice

// sluice random: a checkpoint with random weights of a known model's shape.
#include "sluice/random_model.h"

#include <memory>

#include "command.h"
#include "model_options.h"
#include "progress.h"

namespace sluice::cli {

namespace {

struct Options {
  std::string geometry;
  int bits = 4;
  bool gguf = false;
  std::string out;
  std::string routing;
};

}  // namespace

void add_random(Parser& parser) {
  auto options = std::make_shared<Options>();
  Command command =
      parser.add("random", "Write a checkpoint with random weights, to test and to measure with");
  command.required("--geometry", options->geometry,
                   "A model's shape, e.g. qwen3.6-35b-a3b:layers=8,experts=64");
  command.option("--bits", options->bits, "2, 3, 4, 5, 6 or 8; 16: BF16");
  command.option("--routing", options->routing,
                 "zipf:1.0: routers prefer some experts, their shares by Zipf's law; default: as it happens");
  command.flag("--gguf", options->gguf, "Write one GGUF file of Q4_K weights instead, for other programs");
  command.required("OUT", options->out, "Folder or file to make");
  command.on_run([options] {
    Progress progress("writing");
    const auto show = [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); };
    const double zipf = zipf_exponent(options->routing);
    if (options->gguf) return write_random_gguf(options->geometry, options->out, show, zipf);
    write_random_model(options->geometry, options->bits, options->out, show, zipf);
  });
}

}  // namespace sluice::cli

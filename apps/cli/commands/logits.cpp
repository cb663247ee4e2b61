// sluice logits: the model's raw output for given token ids.
#include <memory>

#include "commands/commands.h"
#include "options/input.h"
#include "options/model.h"
#include "sluice/logits_file.h"
#include "sluice/session.h"
#include "terminal/progress.h"
#include "terminal/signals.h"

namespace sluice::cli::commands {

namespace {

struct LogitsArguments {
  options::Model model;
  std::string tokens;
  std::string out;
  std::int64_t greedy = 0;
  bool rounded = false;
};

void run(LogitsArguments& options) {
  const std::vector<std::int32_t> tokens = options::parse_tokens(options.tokens, "--tokens");
  // Logits are computed to be compared, so without approximations for speed.
  options.model.engine.exact = options.model.engine.exact || !options.rounded;
  const auto engine = options.model.load();
  terminal::note_interrupts();
  terminal::Progress progress("computing");
  write_logits_file(*engine, tokens, options.greedy, options.out,
                    [&](std::uint64_t done, std::uint64_t total) {
                      terminal::stop_if_interrupted("interrupted; nothing was written");
                      progress.update(done, total);
                    });
}

}  // namespace

void add_logits(Parser& parser) {
  auto options = std::make_shared<LogitsArguments>();
  Command command = parser.add("logits", "Write the logits of given token ids to a safetensors file");
  command.required("MODEL", options->model.model, options::kModelMeaning);
  command.required("--tokens", options->tokens, "Token ids: 1,2,3 or @FILE");
  command.option("--greedy", options->greedy, "Then choose this many tokens greedily, one step at a time",
                 {0, 1 << 30});
  command.required("--out", options->out,
                   "File to write: F32 logits [T,vocab] and, with --greedy, I32 greedy [N]");
  command.flag("--rounded", options->rounded,
               "Round as other commands do without --exact: to integers on CPUs, to BF16 on GPUs");
  options::add_engine(command, options->model);
  command.example("sluice logits delta-story --tokens 1,2,3 --greedy 16 --out logits.safetensors",
                  "logits of three tokens, and the 16 that follow greedily");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands

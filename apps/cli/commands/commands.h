// One file per command; each adds itself to the parser and runs when chosen.
#pragma once

#include "parser.h"

namespace sluice::cli::commands {

void add_bench(Parser& parser);
void add_cache(Parser& parser);
void add_chat(Parser& parser);
void add_convert(Parser& parser);
void add_help(Parser& parser);
void add_inspect(Parser& parser);
void add_list(Parser& parser);
void add_logits(Parser& parser);
void add_op(Parser& parser);
void add_perplexity(Parser& parser);
void add_plan(Parser& parser);
void add_pull(Parser& parser);
void add_random(Parser& parser);
void add_rm(Parser& parser);
void add_run(Parser& parser);
void add_serve(Parser& parser);
void add_template(Parser& parser);
void add_tokenize(Parser& parser);
void add_verify(Parser& parser);
void add_version(Parser& parser);

}  // namespace sluice::cli::commands

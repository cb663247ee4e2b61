// Text from a model in thirty lines: story_example MODEL_FOLDER "Once upon a time"
#include <cstdio>
#include <string>

#include "sluice/engine.h"
#include "sluice/error.h"
#include "sluice/session.h"

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::printf("usage: %s MODEL_FOLDER [PROMPT]\n", argv[0]);
    return 0;
  }
  const auto engine = sluice::Engine::load(argv[1]);
  const auto session = engine->new_session(1024);

  sluice::GenerateOptions options;
  options.max_tokens = 150;
  options.sampling.temperature = 0.7;
  const auto prompt = engine->encode(argc > 2 ? argv[2] : "Once upon a time", true);
  sluice::generate(*session, prompt, options, [](const sluice::GeneratedToken& token) {
    std::fputs(token.text.c_str(), stdout);
    std::fflush(stdout);
    return true;  // false stops here
  });
  std::puts("");
} catch (const sluice::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

#include "text/detokenizer.h"

namespace sluice::text {

std::string Detokenizer::push(std::int32_t id) {
  std::string out;
  if (!(skip_special_ && tokenizer_.is_special(id))) decoder_.push(tokenizer_.bytes(id), out);
  return out;
}

std::string Detokenizer::finish() {
  std::string out;
  decoder_.finish(out);
  return out;
}

}  // namespace sluice::text

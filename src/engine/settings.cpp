#include "engine/settings.h"

#include "base/error.h"

namespace sluice::engine {

using ops::DType;

void check(const EngineOptions& options) {
  if (options.prefill_chunk < 0 || options.prefill_chunk > (1 << 20))
    fail(ErrorKind::input, "the prefill chunk is {} tokens, allowed is 1 to {}, or 0 for the backend's own",
         options.prefill_chunk, 1 << 20);
  for (const auto& [side, bits] :
       {std::pair{"keys", options.key_bits}, std::pair{"values", options.value_bits}})
    if (!(bits >= 2 && bits <= 6) && bits != 8 && bits != 16)
      fail(ErrorKind::input, "cached {} cannot have {} bits, allowed is 2, 3, 4, 5, 6, 8 or 16", side, bits);
  if ((options.key_bits != 16 || options.value_bits != 16) && options.cache == CacheType::f32)
    fail(ErrorKind::input, "a packed cache of {} and {} bits cannot hold F32 rows", options.key_bits,
         options.value_bits);
}

Settings settings_for(const EngineOptions& options, const ops::Traits& backend) {
  Settings settings;
  settings.activations = options.exact ? DType::f32 : backend.activations;
  const DType type = options.cache == CacheType::automatic ? settings.activations
                     : options.cache == CacheType::bf16    ? DType::bf16
                                                           : DType::f32;
  settings.cache = {type, options.key_bits, options.value_bits};
  settings.prefill_chunk = options.prefill_chunk > 0 ? options.prefill_chunk : backend.prefill_chunk;
  settings.growth = backend.growth;
  settings.program_bytes = backend.program_bytes;
  settings.program_layer_bytes = backend.program_layer_bytes;
  return settings;
}

}  // namespace sluice::engine

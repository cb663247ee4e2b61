// The instruction sets that both this machine and this build support.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cpu/runtime/isa.h"
#include "sluice/error.h"

namespace sluice {

// Lowest first.
inline std::vector<std::string> isas_here() {
  using backend::cpu::Isa;
  std::vector<std::string> names;
  for (const Isa isa :
       {Isa::sse4, Isa::avx2, Isa::avxvnni, Isa::avx512, Isa::amx, Isa::neon, Isa::dotprod, Isa::i8mm}) {
    const std::string name(backend::cpu::name_of(isa));
    try {
      backend::cpu::choose_isa(name);
      names.push_back(name);
    } catch (const Error&) {  // not supported here
    }
  }
  EXPECT_FALSE(names.empty());
  return names;
}

}  // namespace sluice

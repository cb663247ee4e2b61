#include "server/openai/error.h"

namespace sluice::server::openai {

Json error_body(const ApiError& error) {
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", error.param.empty() ? Json() : Json(error.param)},
            {"code", error.code.empty() ? Json() : Json(error.code)}}}};
}

}  // namespace sluice::server::openai

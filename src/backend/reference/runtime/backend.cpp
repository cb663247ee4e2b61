#include <cstring>

#include "backend/host_memory.h"
#include "backend/make.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

namespace {

class ReferenceBackend final : public HostBackend {
 public:
  std::string_view name() const override { return "reference"; }
  std::string description() const override { return "scalar code, double accumulation, one thread"; }
  const ops::Traits& traits() const override { return kReferenceTraits; }

 private:
  void execute(const ops::AnyOp& op, ops::Phase) override {
    std::visit([](const auto* known) { reference::run(*known); }, op);
  }
};

}  // namespace

std::unique_ptr<ops::Backend> make() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace sluice::backend::reference

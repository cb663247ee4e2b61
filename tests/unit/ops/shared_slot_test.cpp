// Sequences may share a row of a pool that an op only reads, but not one that it writes.
#include <gtest/gtest.h>

#include <algorithm>

#include "expect_error.h"
#include "runner/bound_op.h"
#include "runner/random_tensor.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {
namespace {

using ops::DType;

OpFile two_sequences() {
  OpFile file;
  file.tensors["seq_starts"] = indices({0, 2, 3});
  file.tensors["slots"] = indices({1, 1});
  return file;
}

OpFile attention() {
  Random random(1);
  OpFile file = two_sequences();
  file.tensors["q"] = normal(random, DType::f32, {3, 4, 64});
  file.tensors["k_cache"] = normal(random, DType::f32, {2, 8, 2, 64});
  file.tensors["v_cache"] = normal(random, DType::f32, {2, 8, 2, 64});
  file.tensors["start"] = indices({4, 7});
  file.attributes["scale"] = "0.1";
  return file;
}

OpFile turboquant_attention() {
  Random random(2);
  OpFile file = two_sequences();
  file.tensors["q"] = normal(random, DType::f32, {3, 4, 64});
  for (const char* side : {"k", "v"}) {
    file.tensors[std::string(side) + "_codes"] = random_bytes(random, DType::u8, {2, 2, 8, 32});
    file.tensors[std::string(side) + "_norms"] = uniform(random, DType::f32, {2, 2, 8}, 0.5, 2);
    file.attributes[std::string(side) + "_bits"] = "4";
  }
  file.tensors["length"] = indices({6, 8});
  file.attributes["scale"] = "0.1";
  return file;
}

OpFile mla_attention() {
  Random random(3);
  OpFile file = two_sequences();
  file.tensors["q_latent"] = normal(random, DType::f32, {3, 4, 64});
  file.tensors["q_pe"] = normal(random, DType::f32, {3, 4, 16});
  file.tensors["latent_cache"] = normal(random, DType::f32, {2, 8, 64});
  file.tensors["rope_cache"] = normal(random, DType::f32, {2, 8, 16});
  file.tensors["start"] = indices({4, 7});
  file.attributes["scale"] = "0.1";
  return file;
}

// The same with two copies of the shared row, one slot for each.
OpFile apart(OpFile file) {
  for (auto& [name, tensor] : file.tensors)
    if (tensor.shape[0] == 2 && tensor.shape.rank() > 1)
      std::copy_n(tensor.bytes.data() + tensor.bytes.size() / 2, tensor.bytes.size() / 2,
                  tensor.bytes.data());
  file.tensors["slots"] = indices({0, 1});
  return file;
}

TEST(SharedSlot, IsReadByBoth) {
  for (const auto& [op, file] :
       {std::pair("attention", attention()), std::pair("turboquant_attention", turboquant_attention()),
        std::pair("mla_attention", mla_attention())})
    for (const char* name : {"reference", "cpu"}) {
      const auto backend = ops::make_backend(name, {.threads = 2});
      EXPECT_EQ(run_op(*backend, op, file).tensors.at("out").bytes,
                run_op(*backend, op, apart(file)).tensors.at("out").bytes)
          << op << " on " << name;
    }
}

TEST(SharedSlot, IsNotWritten) {
  const auto backend = ops::make_backend("cpu", {.threads = 1});
  const auto refused = [&](const std::string& op, const OpFile& file) {
    expect_error(ErrorKind::input, {op, "'slots'", "row 1 twice"}, [&] { run_op(*backend, op, file); });
  };
  OpFile file = two_sequences();
  for (const char* side : {"k", "v"}) {
    file.tensors[side] = HostTensor(DType::f32, {3, 2, 64});
    file.tensors[std::string(side) + "_cache"] = HostTensor(DType::f32, {2, 8, 2, 64});
  }
  file.tensors["start"] = indices({0, 4});
  refused("kv_append", file);
  file = two_sequences();
  file.tensors["kv_latent"] = HostTensor(DType::f32, {3, 64});
  file.tensors["k_pe"] = HostTensor(DType::f32, {3, 16});
  file.tensors["latent_cache"] = HostTensor(DType::f32, {2, 8, 64});
  file.tensors["rope_cache"] = HostTensor(DType::f32, {2, 8, 16});
  file.tensors["start"] = indices({0, 4});
  refused("mla_append", file);
  file = two_sequences();
  file.tensors["x"] = HostTensor(DType::f32, {3, 8});
  file.tensors["weight"] = HostTensor(DType::f32, {8, 4});
  file.tensors["state"] = HostTensor(DType::f32, {2, 3, 8});
  refused("causal_conv1d", file);
}

}  // namespace
}  // namespace sluice::runner

// Runs single ops on files or on tensors in memory, lists and describes them, and verifies and times them on
// this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/ops/backend.h"

namespace sluice {

// Reads the op's fields and attributes from a safetensors file, runs it, writes every output and updated
// field.
void run_op_file(std::string_view op, const std::filesystem::path& in, const std::filesystem::path& out,
                 std::string_view backend, int threads = 0);

// The fields and attributes of an op by name; tensors are contiguous.
struct OpArguments {
  std::map<std::string, ops::ConstView> tensors;
  std::map<std::string, std::string> attributes;
  // Whether the tensors are in the backend's memory, aligned to 64 bytes, instead of host memory.
  bool in_backend_memory = false;
};
// Every output and updated field, in the order of the op's table.
struct OpResult {
  std::vector<std::pair<std::string, ops::View>> fields;
  std::shared_ptr<const void> memory;  // owns the backend memory of the fields
};
// Runs the op and waits for its end. Inputs in the backend's memory are read in place. The caller's memory is
// never written: fields that the op updates are copied first.
OpResult run_op(ops::Backend& backend, std::string_view op, const OpArguments& arguments);

struct OpFieldDescription {
  std::string name;
  std::string role;   // input, optional, output, in place
  std::string types;  // allowed element types
  std::string shape;
};
struct OpAttributeDescription {
  std::string name;
  std::string type;
  std::string default_value;  // empty where the attribute is required
  std::string meaning;
};
struct OpDescription {
  std::string name;
  std::string family;
  std::string formula;
  bool several_sequences = false;  // takes seq_starts and slots
  std::vector<OpFieldDescription> fields;
  std::vector<OpAttributeDescription> attributes;
};
std::vector<OpDescription> describe_ops();
OpDescription describe_op(std::string_view op);
// The catalogue as docs/ops.md holds it.
std::string ops_markdown();

struct OpVerification {
  std::string op;
  int cases = 0;
  int failed = 0;
  double worst_error = 0;
  double limit = 0;
  std::vector<std::string> failures;  // one line each
};
struct VerifyOptions {
  std::string backend = "auto";
  std::string op;  // empty: every op
  int threads = 0;
  int cases = 0;         // of each op's table, spread over it; 0: all
  bool exact = true;     // otherwise activations may be rounded, as engines do by default
  std::string isa = {};  // of a CPU, lower than its best: see ops::BackendOptions
};
// Checks the case table against the reference; reports each op when it is done.
std::vector<OpVerification> verify_ops(const VerifyOptions& options,
                                       const std::function<void(const OpVerification&)>& report);

struct MachinePeak {
  double read_gigabytes_per_second = 0;
  double gigaflops = 0;  // F32 multiply-adds, two operations each
};
struct OpTiming {
  std::string op;
  std::string label;
  double microseconds = 0;  // median
  double gigabytes_per_second = 0;
  double gigaflops = 0;
  MachinePeak peak;            // the better of one measurement before and one after: machines drift
  double percent_of_peak = 0;  // of the bound that is nearer: memory or arithmetic
};
struct OpBenchOptions {
  std::string backend = "auto";
  std::string op;
  int threads = 0;
  double seconds_per_case = 0.5;
  bool exact = true;
  std::string isa = {};
  std::uint64_t memory = 0;  // maximum bytes to use, except for a single larger case; 0: the default
};
// Measures the machine first, then every benchmark case.
MachinePeak bench_ops(const OpBenchOptions& options, const std::function<void(const MachinePeak&)>& measured,
                      const std::function<void(const OpTiming&)>& report);

}  // namespace sluice

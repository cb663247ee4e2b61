#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/bound_op.h"
#include "runner/case.h"
#include "runner/compare.h"
#include "runner/find_op.h"
#include "sluice/op_runner.h"

namespace sluice {

namespace runner {

std::uint64_t case_seed(std::string_view op, std::string_view label) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::string_view part : {op, std::string_view("/"), label})
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

namespace {

OpVerification verify(ops::Backend& backend, ops::Backend& reference, std::string_view op,
                      const std::vector<Case>& table, int at_most) {
  OpVerification result;
  result.op = op;
  const std::size_t step = at_most > 0 ? std::max<std::size_t>(1, table.size() / to_size(at_most)) : 1;
  for (std::size_t i = 0; i < table.size(); i += step) {
    const Case& one = table[i];
    const std::uint64_t seed = case_seed(op, one.label);
    Verdict verdict;
    try {
      verdict = compare(backend, reference, op, one.make(seed));
    } catch (const Error& error) {
      verdict.detail = error.what();
    }
    ++result.cases;
    result.limit = std::max(result.limit, verdict.limit);
    if (std::isnan(verdict.error) || verdict.error > result.worst_error) result.worst_error = verdict.error;
    if (verdict.pass) continue;
    ++result.failed;
    result.failures.push_back(fmt::format("{} [{}] seed {}: {}", op, one.label, seed, verdict.detail));
  }
  return result;
}

}  // namespace
}  // namespace runner

void run_op_file(std::string_view op, const std::filesystem::path& in, const std::filesystem::path& out,
                 std::string_view backend, int threads) {
  runner::find_op(op, []<class Op>() {});  // rejects unknown names before any file is opened
  const auto device = ops::make_backend(backend, {.threads = threads});
  runner::write_op_file(out, runner::run_op(*device, op, runner::read_op_file(in)));
}

std::vector<OpVerification> verify_ops(const VerifyOptions& options,
                                       const std::function<void(const OpVerification&)>& report) {
  const auto backend = ops::make_backend(
      options.backend, {.threads = options.threads, .exact = options.exact, .isa = options.isa});
  const auto reference = ops::make_backend("reference");
  std::vector<OpVerification> results;
  const auto verify_one = [&]<class Op>() {
    results.push_back(runner::verify(*backend, *reference, Op::kName, runner::cases<Op>(), options.cases));
    if (report) report(results.back());
  };
  if (options.op.empty())
    ops::AllOps::for_each(verify_one);
  else
    runner::find_op(options.op, verify_one);
  return results;
}

}  // namespace sluice

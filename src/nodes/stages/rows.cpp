#include "nodes/stages/rows.h"

#include <numeric>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::nodes::stages {

namespace {

void expect(const Message& message, std::size_t bytes) {
  if (message.size() != bytes)
    fail(ErrorKind::internal, "a node sent rows of {} bytes instead of {}", message.size(), bytes);
}

}  // namespace

std::vector<std::int64_t> wanted_rows(const layers::Pass& pass) {
  if (pass.phase != ops::Phase::decode) return pass.logit_rows;
  std::vector<std::int64_t> all(to_size(pass.tokens));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

Message pack_rows(ops::Backend& backend, const ops::View& x) {
  Message message(state::bytes_of(x));
  backend.synchronize();
  backend.download(message.data(), x.data, message.size());
  return message;
}

Message pack_rows(ops::Backend& backend, const ops::View& x, std::span<const std::int64_t> rows) {
  const std::size_t width = state::bytes_of(x[0]);
  Message message(rows.size() * width);
  backend.synchronize();
  for (std::size_t i = 0; i < rows.size(); ++i)
    backend.download(message.data() + i * width, x[rows[i]].data, width);
  return message;
}

void unpack_rows(ops::Backend& backend, const Message& message, const ops::View& x) {
  expect(message, state::bytes_of(x));
  backend.upload(x.data, message.data(), message.size());
}

void unpack_rows(ops::Backend& backend, const Message& message, const ops::View& x,
                 std::span<const std::int64_t> rows) {
  const std::size_t width = state::bytes_of(x[0]);
  expect(message, rows.size() * width);
  for (std::size_t i = 0; i < rows.size(); ++i)
    backend.upload(x[rows[i]].data, message.data() + i * width, width);
}

}  // namespace sluice::nodes::stages

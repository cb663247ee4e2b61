// Checks the promise of invariance for any op from its table: a call over T tokens and T calls over one token
// each give the same bits, and so does a sequence alone or among others.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "ops/visit.h"
#include "runner/bound_op.h"
#include "runner/case.h"
#include "runner/find_op.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

using ops::Role;
using ops::Shape;
using ops::ShapeSpec;

struct TableField {
  std::string name;
  Role role;
  bool pooled;
  ShapeSpec shape;
  ShapeSpec other_shape;
};

struct OpTable {
  std::string op;
  std::vector<TableField> fields;            // tensors; weights have no tokens
  std::vector<std::string> sequence_values;  // start, length, ring_start
  std::vector<Case> cases;
};

inline OpTable table_of(const std::string& name) {
  OpTable table;
  table.op = name;
  find_op(name, [&]<class Op>() {
    table.cases = cases<Op>();
    ops::for_each_entry<Op>([&](const auto& entry) {
      using Entry = std::remove_cvref_t<decltype(entry)>;
      using Member = ops::Member<Entry>;
      if constexpr (std::is_same_v<Member, ops::View> || std::is_same_v<Member, ops::ConstView>)
        table.fields.push_back(
            {std::string(entry.name), entry.role, entry.pooled, entry.shape, entry.other_shape});
      else if constexpr (std::is_same_v<Member, ops::SequenceValue>)
        table.sequence_values.emplace_back(entry.name);
    });
  });
  return table;
}

// The dimension that counts tokens, or -1. If a contract leaves the leading dimensions open, the first one
// counts the tokens.
inline int token_dimension(const TableField& field, const Shape& given) {
  for (const ShapeSpec* spec : {&field.shape, &field.other_shape}) {
    if (spec->text.empty()) continue;
    if (spec->whole && given.rank() > 1) return 0;
    if (spec->leading && given.rank() > spec->rank) return 0;
    if (spec->whole || spec->leading || spec->rank != given.rank()) continue;
    for (int d = 0; d < spec->rank; ++d) {
      const ops::DimExpression& e = spec->dims[static_cast<std::size_t>(d)];
      if (e.lone_symbol() && ops::kSymbols[static_cast<std::size_t>(e.code[0])] == "T") return d;
    }
  }
  return -1;
}

inline HostTensor slice(const HostTensor& tensor, int dimension, std::int64_t begin, std::int64_t count) {
  Shape shape = tensor.shape;
  const std::int64_t length = shape[dimension];
  shape[dimension] = count;
  HostTensor part(tensor.dtype, shape);
  std::int64_t outer = 1;
  for (int d = 0; d < dimension; ++d) outer *= shape[d];
  const std::size_t inner = count == 0 ? 0 : part.bytes.size() / static_cast<std::size_t>(outer * count);
  const auto run = static_cast<std::size_t>(count) * inner;
  for (std::int64_t o = 0; o < outer; ++o)
    std::copy_n(tensor.bytes.begin() +
                    static_cast<std::ptrdiff_t>(static_cast<std::size_t>(o * length + begin) * inner),
                run, part.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(o) * run));
  return part;
}

inline bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
}

inline std::int64_t token_count(const OpTable& table, const OpFile& file) {
  for (const TableField& field : table.fields)
    if (const auto found = file.tensors.find(field.name); found != file.tensors.end())
      if (const int d = token_dimension(field, found->second.shape); d >= 0) return found->second.shape[d];
  return 0;
}

inline bool has_sequence_value(const OpFile& file, const std::string& name) {
  return file.tensors.contains(name) || file.attributes.contains(name);
}

// A value of the file's only sequence, given per call or per sequence; absent means 0.
inline std::int64_t sequence_value(const OpFile& file, const std::string& name) {
  if (const auto tensor = file.tensors.find(name); tensor != file.tensors.end())
    return static_cast<std::int64_t>(tensor->second.at(0));
  const auto attribute = file.attributes.find(name);
  return attribute == file.attributes.end() ? 0 : std::stoll(attribute->second);
}

inline void set_sequence_value(OpFile& file, const std::string& name, std::int64_t value) {
  if (file.tensors.contains("seq_starts"))
    file.tensors[name] = indices({static_cast<std::int32_t>(value)});
  else
    file.attributes[name] = std::to_string(value);
}

inline void keep_tokens(const OpTable& table, OpFile& file, std::int64_t begin, std::int64_t count) {
  for (const TableField& field : table.fields) {
    const auto found = file.tensors.find(field.name);
    if (found == file.tensors.end()) continue;
    const int d = token_dimension(field, found->second.shape);
    if (d >= 0) found->second = slice(found->second, d, begin, count);
  }
  if (file.tensors.contains("seq_starts"))
    file.tensors["seq_starts"] = indices({0, static_cast<std::int32_t>(count)});
}

// Token t of the file's only sequence, as a call of its own.
inline OpFile one_token(const OpTable& table, const OpFile& file, std::int64_t tokens, std::int64_t t) {
  OpFile single = file;
  keep_tokens(table, single, t, 1);
  for (const std::string& name : table.sequence_values) {
    if (!has_sequence_value(file, name)) continue;
    if (name == "start") set_sequence_value(single, name, sequence_value(file, name) + t);
    if (name == "length") set_sequence_value(single, name, sequence_value(file, name) - tokens + t + 1);
  }
  return single;
}

// Sequence b of the file as the only one of a call over the same pool.
inline OpFile one_sequence(const OpTable& table, const OpFile& file, std::int64_t b) {
  const HostTensor& starts = file.tensors.at("seq_starts");
  const auto begin = static_cast<std::int64_t>(starts.at(b));
  OpFile alone = file;
  keep_tokens(table, alone, begin, static_cast<std::int64_t>(starts.at(b + 1)) - begin);
  const auto slots = file.tensors.find("slots");
  const auto slot = slots == file.tensors.end() ? b : static_cast<std::int64_t>(slots->second.at(b));
  alone.tensors["slots"] = indices({static_cast<std::int32_t>(slot)});
  for (const std::string& name : table.sequence_values)
    if (const auto each = file.tensors.find(name); each != file.tensors.end())
      set_sequence_value(alone, name, static_cast<std::int64_t>(each->second.at(b)));
  return alone;
}

// Runs token by token, carrying states and caches from call to call.
inline void check_tokens(ops::Backend& backend, const OpTable& table, OpFile file, const OpFile& together) {
  const std::int64_t tokens = token_count(table, file);
  if (tokens < 2) return;
  // A ring that is not full yet starts at slot 0, so a full one that starts elsewhere cannot be shortened.
  if (sequence_value(file, "ring_start") != 0) return;
  // Rows passed beside a packed cache are read from the cache by later calls, so by contract dividing a call
  // changes results.
  if (file.tensors.contains("k_new") || file.tensors.contains("latent_new")) return;
  bool carries = false;
  for (const TableField& field : table.fields)
    if (field.role == Role::in_place && together.tensors.contains(field.name))
      carries |= token_dimension(field, together.tensors.at(field.name).shape) < 0;
  // Without a state every token is independent, so some are enough.
  const std::int64_t step = carries ? 1 : std::max<std::int64_t>(1, tokens / 5);
  for (std::int64_t t = 0; t < tokens; t = t + step < tokens || t == tokens - 1 ? t + step : tokens - 1) {
    const OpFile outputs = run_op(backend, table.op, one_token(table, file, tokens, t));
    for (const TableField& field : table.fields) {
      const auto output = outputs.tensors.find(field.name);
      if (output == outputs.tensors.end()) continue;
      const HostTensor& all = together.tensors.at(field.name);
      const int d = token_dimension(field, all.shape);
      if (d < 0) {
        file.tensors[field.name] = output->second;
        continue;
      }
      ASSERT_TRUE(same_bits(output->second, slice(all, d, t, 1))) << field.name << " of token " << t;
    }
  }
  for (const TableField& field : table.fields) {
    if (field.role != Role::in_place || !together.tensors.contains(field.name)) continue;
    const HostTensor& all = together.tensors.at(field.name);
    if (token_dimension(field, all.shape) >= 0) continue;
    EXPECT_TRUE(same_bits(file.tensors.at(field.name), all)) << field.name << " after the last token";
  }
}

// Runs the first half of the tokens only: later tokens must not affect it.
inline void check_prefix(ops::Backend& backend, const OpTable& table, OpFile file, const OpFile& together) {
  const std::int64_t tokens = token_count(table, file);
  const std::int64_t kept = tokens / 2;
  // A ring that is not full yet starts at slot 0, so a full one that starts elsewhere cannot be shortened.
  if (kept == 0 || sequence_value(file, "ring_start") != 0) return;
  keep_tokens(table, file, 0, kept);
  for (const std::string& name : table.sequence_values)
    if (name == "length" && has_sequence_value(file, name))
      set_sequence_value(file, name, sequence_value(file, name) - tokens + kept);
  const OpFile outputs = run_op(backend, table.op, file);
  for (const TableField& field : table.fields) {
    const auto output = outputs.tensors.find(field.name);
    if (output == outputs.tensors.end()) continue;
    const HostTensor& all = together.tensors.at(field.name);
    const int d = token_dimension(field, all.shape);
    if (d < 0) continue;
    EXPECT_TRUE(same_bits(output->second, slice(all, d, 0, kept))) << field.name;
  }
}

// One of the two above.
using PartCheck = std::function<void(ops::Backend&, const OpTable&, OpFile, const OpFile&)>;

// A sequence's rows of a pool: its slot, or its pages.
inline std::vector<std::int64_t> pool_rows(const OpFile& file, std::int64_t slot, std::int64_t pool) {
  const auto found = file.tensors.find("page_table");
  if (found == file.tensors.end()) return {slot};
  const HostTensor& table = found->second;
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < table.shape[1]; ++i)
    if (const auto page = static_cast<std::int64_t>(table.at(slot * table.shape[1] + i));
        page >= 0 && page < pool)
      rows.push_back(page);
  return rows;
}

// Runs each sequence of a batch by itself, and its parts.
inline void check_sequences(ops::Backend& backend, const OpTable& table, const OpFile& file,
                            const OpFile& together, const PartCheck& check_part) {
  const HostTensor& starts = file.tensors.at("seq_starts");
  for (std::int64_t b = 0; b + 1 < starts.shape[0]; ++b) {
    const auto begin = static_cast<std::int64_t>(starts.at(b));
    const std::int64_t count = static_cast<std::int64_t>(starts.at(b + 1)) - begin;
    if (count == 0) continue;
    SCOPED_TRACE(fmt::format("sequence {}", b));
    const OpFile alone = one_sequence(table, file, b);
    const auto slot = static_cast<std::int64_t>(alone.tensors.at("slots").at(0));
    const OpFile outputs = run_op(backend, table.op, alone);
    for (const TableField& field : table.fields) {
      const auto output = outputs.tensors.find(field.name);
      if (output == outputs.tensors.end()) continue;
      const HostTensor& all = together.tensors.at(field.name);
      if (field.pooled) {
        for (const std::int64_t row : pool_rows(alone, slot, all.shape[0]))
          EXPECT_TRUE(same_bits(slice(output->second, 0, row, 1), slice(all, 0, row, 1))) << field.name;
      } else {
        EXPECT_TRUE(same_bits(output->second, slice(all, token_dimension(field, all.shape), begin, count)))
            << field.name;
      }
    }
    check_part(backend, table, alone, outputs);
  }
}

// In some ops T counts something else: complete chunks of dependent rows, and rows that are summed into.
inline bool has_tokens(const OpTable& table) {
  static const std::set<std::string> kOtherMeaning = {"delta_kkt", "moe_scatter_add"};
  return !kOtherMeaning.contains(table.op);
}

inline OpFile make_case(const OpTable& table, const Case& one) {
  OpFile file = one.make(case_seed(table.op, one.label));
  // The chunked form promises less: restarts only at multiples of the chunk.
  if (table.op == "delta_rule") file.attributes["form"] = "recurrent";
  return file;
}

inline void check_parts(ops::Backend& backend, const OpTable& table, const OpFile& file,
                        const OpFile& together, const PartCheck& check_part) {
  // Positions for saving states refer to the complete call.
  if (!has_tokens(table) || file.tensors.contains("save_at")) return;
  if (file.tensors.contains("seq_starts"))
    check_sequences(backend, table, file, together, check_part);
  else
    check_part(backend, table, file, together);
}

}  // namespace sluice::runner

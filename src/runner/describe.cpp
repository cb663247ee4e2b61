#include <fmt/format.h>

#include <functional>

#include "ops/erase.h"
#include "quant/formats.h"
#include "runner/find_op.h"
#include "sluice/op_runner.h"

namespace sluice {

namespace {

std::string_view role_name(ops::Role role) {
  switch (role) {
    case ops::Role::in:
      return "input";
    case ops::Role::optional:
      return "optional";
    case ops::Role::out:
      return "output";
    case ops::Role::in_place:
      return "in place";
  }
  return "?";
}

std::string_view type_names(ops::TypeClass types) {
  switch (types) {
    case ops::TypeClass::activation:
    case ops::TypeClass::cache:
      return "F32, BF16";
    case ops::TypeClass::parameter:
      return "F32, BF16, F16";
    case ops::TypeClass::f32:
      return "F32";
    case ops::TypeClass::i32:
      return "I32";
    case ops::TypeClass::u8:
      return "U8";
  }
  return "?";
}

std::string shape_text(const ops::ShapeSpec& shape, bool pooled) {
  if (shape.whole) return "any";
  // The tables have a symbol of its own for the number of sequences plus one.
  const std::string inner = shape.text == "B1" ? "B+1" : std::string(shape.text);
  return fmt::format("[{}{}]", pooled ? "(P,)" : "", inner);
}

template <class Op>
bool takes_activations() {
  bool found = false;
  ops::for_each_entry<Op>([&](const auto& entry) {
    if constexpr (ops::kIsField<std::remove_cvref_t<decltype(entry)>>)
      found |= entry.role != ops::Role::out && entry.types == ops::TypeClass::activation;
  });
  return found;
}

// "affine: 2, 3, 4; mxfp4: 4", of what the formats allow.
std::string by_format(const std::function<std::string(const quant::Format&)>& text_of) {
  std::string text;
  for (const quant::Format* format : quant::kFormats)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", format->name, text_of(*format));
  return text;
}

// The attributes of a packed weight.
void add_format(OpDescription& description, const std::string& weight) {
  using quant::Format;
  description.attributes.push_back(
      {weight + ".mode", quant::format_names(), std::string(quant::kFormats[0]->name),
       fmt::format("packed only: fields {0}.weight, {0}.scales and, if affine, {0}.biases in place of {0}",
                   weight)});
  description.attributes.push_back(
      {weight + ".bits", by_format([](const Format& f) { return quant::allowed_text(f.bits); }),
       by_format([](const Format& f) { return std::to_string(f.bits[0]); }), "packed only: bits per code"});
  description.attributes.push_back(
      {weight + ".group_size", by_format([](const Format& f) { return quant::allowed_text(f.group_sizes); }),
       by_format([](const Format& f) { return std::to_string(f.group_sizes[0]); }),
       "packed only: values that share a scale"});
}

template <class Op, class M>
void add_entry(OpDescription& description, const ops::Field<Op, M>& field) {
  constexpr bool kWeight = std::is_same_v<M, ops::Weight> || std::is_same_v<M, ops::ExpertWeights>;
  std::string shape = shape_text(field.shape, field.pooled);
  if (!field.other_shape.text.empty()) shape += " or " + shape_text(field.other_shape, field.pooled);
  std::string types = kWeight ? "weight" : std::string(type_names(field.types));
  // Without an activation among the inputs, no type can be inferred.
  if (field.role == ops::Role::out && field.types == ops::TypeClass::activation && !takes_activations<Op>())
    types = "F32 (default), BF16";
  description.fields.push_back(
      {std::string(field.name),
       fmt::format("{}{}", role_name(field.role), field.may_be_absent ? ", optional" : ""), std::move(types),
       std::move(shape)});
  if constexpr (kWeight) add_format(description, std::string(field.name));
}

template <class Op, class M>
void add_entry(OpDescription& description, const ops::Attribute<Op, M>& attribute) {
  OpAttributeDescription entry;
  entry.name = attribute.name;
  entry.meaning = attribute.meaning;
  const M value = Op{}.*attribute.member;
  if constexpr (std::is_same_v<M, double>) {
    entry.type = "number";
    entry.default_value = fmt::format("{}", value);
  } else if constexpr (std::is_same_v<M, std::int64_t>) {
    entry.type = "integer";
    entry.default_value = fmt::format("{}", value);
  } else if constexpr (std::is_same_v<M, bool>) {
    entry.type = "0 or 1";
    entry.default_value = value ? "1" : "0";
  } else if constexpr (std::is_same_v<M, ops::SequenceValue>) {
    entry.type = "integer, or field I32 [B]";
    entry.default_value = "0";
  } else if constexpr (ops::kIsRowValue<M>) {
    constexpr bool kReal = std::is_same_v<M, ops::RowValue<double>>;
    entry.type = fmt::format("{}, or field {} [{}]", kReal ? "number" : "integer", name(ops::row_type<M>()),
                             ops::row_words<M>() == 1 ? "P" : "P,2");
    entry.default_value = fmt::format("{}", value.value);
  } else {
    for (const std::string_view choice : names_of(M{}))
      entry.type += (entry.type.empty() ? "" : ", ") + std::string(choice);
    entry.default_value = names_of(M{})[static_cast<std::size_t>(value)];
  }
  if (attribute.required) entry.default_value.clear();
  description.attributes.push_back(std::move(entry));
}

template <class Op>
OpDescription describe() {
  OpDescription description;
  description.name = Op::kName;
  description.family = Op::kFamily;
  description.formula = Op::kFormula;
  description.several_sequences = ops::kHasSequences<Op>;
  ops::for_each_entry<Op>([&](const auto& entry) { add_entry(description, entry); });
  return description;
}

}  // namespace

std::vector<OpDescription> describe_ops() {
  std::vector<OpDescription> all;
  ops::AllOps::for_each([&]<class Op>() { all.push_back(describe<Op>()); });
  return all;
}

OpDescription describe_op(std::string_view op) {
  OpDescription description;
  runner::find_op(op, [&]<class Op>() { description = describe<Op>(); });
  return description;
}

std::string ops_markdown() {
  std::string text =
      "# The op catalogue\n\n"
      "Generated by `sluice op --markdown`; a test keeps it current. Shapes name dimensions by symbol; "
      "`(P,)` is the pool\n"
      "dimension that states and caches get when `seq_starts` cuts the tokens into several sequences, "
      "`slots` choosing the\n"
      "row of each. With a `page_table` it counts pages of S rows, a power of two from 64 on: row r of a "
      "sequence is row\n"
      "r mod S of the page that entry r / S of its row of the table names (`slots` choose the rows of the "
      "table then), entries\n"
      "of rows that an op neither reads nor writes may be anything, and sequences may share what it only "
      "reads. A weight is dense\n"
      "(F32, BF16, F16) or quantised: `w.weight`, `w.scales`, `w.biases` with attributes `w.mode`, "
      "`w.bits`,\n"
      "`w.group_size`.\n";
  std::string family;
  for (const OpDescription& op : describe_ops()) {
    if (op.family != family) text += fmt::format("\n## {}\n", family = op.family);
    text += fmt::format("\n### `{}`\n\n{}\n\n| field | role | type | shape |\n|---|---|---|---|\n", op.name,
                        op.formula);
    for (const auto& field : op.fields)
      text += fmt::format("| `{}` | {} | {} | `{}` |\n", field.name, field.role, field.types, field.shape);
    if (op.attributes.empty()) continue;
    text += "\n| attribute | type | default | meaning |\n|---|---|---|---|\n";
    for (const auto& attribute : op.attributes)
      text += fmt::format("| `{}` | {} | {} | {} |\n", attribute.name, attribute.type,
                          attribute.default_value.empty() ? "required" : attribute.default_value,
                          attribute.meaning);
  }
  return text;
}

}  // namespace sluice

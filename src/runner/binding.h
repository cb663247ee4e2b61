// The part of binding that all ops share: it takes fields and attributes by name, uploads what is necessary,
// and rejects what the op does not have.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ops/check.h"
#include "sluice/op_runner.h"

namespace sluice::runner {

struct AttributeName {
  std::string_view name;
  bool required;
};

// Whether inputs are used in place if the backend can, or are copied to the backend's memory. With copies,
// outputs are poisoned: those are the runs that check ops.
enum class Inputs { borrowed, copied };

// Exists while an op is bound; `buffers` owns what was uploaded and allocated.
class Binding {
 public:
  Binding(ops::Backend& backend, std::string_view op, const OpArguments& arguments, Inputs inputs,
          std::vector<ops::Buffer>& buffers)
      : backend_(backend),
        op_(op),
        arguments_(arguments),
        borrow_(inputs == Inputs::borrowed && (arguments.in_backend_memory || backend.traits().host_memory)),
        poison_(inputs == Inputs::copied),
        buffers_(buffers) {}

  // Fields; an absent one gives an empty view or weight.
  ops::ConstView input(std::string_view name);
  ops::View updated(std::string_view name);
  ops::Weight weight(std::string_view name);

  // Attributes; an absent one leaves the value unchanged, unless it is required.
  void read(const AttributeName& attribute, double& value);
  void read(const AttributeName& attribute, std::int64_t& value);
  void read(const AttributeName& attribute, bool& value);
  void read(const AttributeName& attribute, ops::SequenceValue& value);
  // One number per call, or a field with one per row.
  template <class T>
  void read(const AttributeName& attribute, ops::RowValue<T>& value) {
    value.per_row = input(attribute.name);
    refuse_both(attribute.name, value.per_row.present());
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      auto number = static_cast<std::int64_t>(value.value);
      read(attribute, number);
      value.value = static_cast<T>(number);
    } else {
      read(attribute, value.value);
    }
  }
  std::optional<std::size_t> choice(const AttributeName& attribute, std::span<const std::string_view> names);

  // Throws if there are fields or attributes that none of the calls above took.
  void refuse_unknown() const;

  // An output of the shape and type implied by the inputs.
  ops::View output(const ops::FieldView& field, std::span<const ops::FieldView> fields,
                   const ops::Dims& dims);

 private:
  const ops::ConstView* take(const std::string& name);
  const std::string* take_attribute(const std::string& name);
  const std::string* text_of(const AttributeName& attribute);
  void refuse_both(std::string_view name, bool field_given) const;
  void refuse_format(const std::string& weight) const;
  int small_integer(const std::string& attribute, const std::string& text) const;

  ops::Backend& backend_;
  std::string_view op_;
  const OpArguments& arguments_;
  bool borrow_;
  bool poison_;
  std::vector<ops::Buffer>& buffers_;
  std::set<std::string, std::less<>> used_;
  std::set<std::string, std::less<>> used_attributes_;
};

}  // namespace sluice::runner

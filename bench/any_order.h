// Instances of schemas as text: a grammar writes the members of objects in an order of its own.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/grammar.h"

namespace sluice {

using OrderedJson = nlohmann::ordered_json;

// One blank after commas and colons. With an order of names the text is canonical: properties in that order,
// whole numbers without fraction.
inline void write(const OrderedJson& value, const std::map<std::string, int>* order, std::string& out) {
  if (value.is_object()) {
    std::vector<std::pair<std::string, const OrderedJson*>> members;
    for (const auto& [key, member] : value.items()) members.emplace_back(key, &member);
    if (order != nullptr) {
      const auto rank = [&](const auto& member) {
        const auto found = order->find(member.first);
        return found == order->end() ? static_cast<int>(order->size()) : found->second;
      };
      std::ranges::stable_sort(members, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    }
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ", ";
      out += OrderedJson(members[i].first).dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + ": ";
      write(*members[i].second, order, out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      write(value[i], order, out);
    }
    out += ']';
  } else if (order != nullptr && value.is_number_float() && std::isfinite(value.get<double>()) &&
             value.get<double>() == std::trunc(value.get<double>())) {
    out += fmt::format("{:.0f}", value.get<double>());
  } else {
    out += value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
}

// Whether the grammar accepts the value with the members of its objects in some order; that of the schema is
// tried first. Objects commit to the first order that works for themselves.
class AnyOrder {
 public:
  AnyOrder(const std::shared_ptr<const Grammar>& grammar, const std::map<std::string, int>& order)
      : matcher_(grammar), order_(order) {}

  bool accepts(const OrderedJson& value) { return follow(value) && matcher_.can_stop(); }

 private:
  using Members = std::vector<std::pair<std::string, const OrderedJson*>>;

  bool text(const std::string& part) {
    if (--budget_ < 0) return false;
    const bool whole = matcher_.accept_text(part) == part.size();
    if (!whole) matcher_.rollback(1);
    steps_ += whole ? 1 : 0;
    return whole;
  }
  void back_to(std::size_t steps) {
    matcher_.rollback(steps_ - steps);
    steps_ = steps;
  }
  bool follow(const OrderedJson& value) {
    const std::size_t before = steps_;
    bool good = false;
    if (value.is_object()) {
      Members members;
      for (const auto& [key, member] : value.items()) members.emplace_back(key, &member);
      std::ranges::stable_sort(members, {}, [this](const auto& member) {
        const auto found = order_.find(member.first);
        return found == order_.end() ? static_cast<int>(order_.size()) : found->second;
      });
      good = text("{") && follow_members(members, true);
    } else if (value.is_array()) {
      good = text("[");
      for (std::size_t i = 0; good && i < value.size(); ++i)
        good = (i == 0 || text(", ")) && follow(value[i]);
      good = good && text("]");
    } else {
      std::string scalar;
      const std::map<std::string, int> canonical;
      write(value, &canonical, scalar);
      good = text(scalar);
    }
    if (!good) back_to(before);
    return good;
  }
  bool follow_members(const Members& members, bool first) {
    if (members.empty()) return text("}");
    const std::size_t before = steps_;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::string name =
          OrderedJson(members[i].first).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
      Members others = members;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (text((first ? "" : ", ") + name + ": ") && follow(*members[i].second) &&
          follow_members(others, false))
        return true;
      back_to(before);
    }
    return false;
  }

  Matcher matcher_;
  const std::map<std::string, int>& order_;
  std::size_t steps_ = 0;
  int budget_ = 200'000;
};

// The order in which a schema names properties.
inline void collect_order(const OrderedJson& schema, std::map<std::string, int>& order) {
  if (schema.is_object()) {
    if (schema.contains("properties") && schema["properties"].is_object())
      for (const auto& [key, unused] : schema["properties"].items())
        order.try_emplace(key, static_cast<int>(order.size()));
    for (const auto& [key, member] : schema.items()) collect_order(member, order);
  } else if (schema.is_array()) {
    for (const OrderedJson& item : schema) collect_order(item, order);
  }
}

}  // namespace sluice

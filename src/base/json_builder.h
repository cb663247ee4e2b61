// Builds a document from the events of nlohmann-json's parser, for readers with their own handling of keys,
// numbers or errors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/integer_cast.h"

namespace sluice {

template <class Document>
class JsonBuilder : public nlohmann::json_sax<Document> {
  using Events = nlohmann::json_sax<Document>;

 public:
  explicit JsonBuilder(int depth) : depth_(depth) {}

  Document take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(typename Events::number_integer_t value) override { return add(value); }
  bool number_unsigned(typename Events::number_unsigned_t value) override { return add(value); }
  bool number_float(typename Events::number_float_t value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(typename Events::binary_t&) override { return false; }  // does not occur in text
  bool start_object(std::size_t) override { return open(Document::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Document::array()); }
  bool end_array() override { return close(); }

 protected:
  // Called for containers that nest too deeply; returning false ends the parse.
  virtual bool too_deep() = 0;

  template <class Value>
  bool add(Value&& value) {
    place(Document(std::forward<Value>(value)));
    return true;
  }

  // The object that the current key belongs to, and where its value will be stored.
  Document& innermost() { return *open_.back(); }
  bool expect_value(Document& slot) {
    slot_ = &slot;
    return true;
  }

 private:
  Document* place(Document value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Document& parent = *open_.back();
    if (!parent.is_array()) return &(*slot_ = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool open(Document container) {
    if (open_.size() >= to_size(depth_)) return too_deep();
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  int depth_;
  Document root_;
  std::vector<Document*> open_;  // containers from the root to the innermost; only the last one grows
  Document* slot_ = nullptr;     // where the value of the last key goes
};

}  // namespace sluice

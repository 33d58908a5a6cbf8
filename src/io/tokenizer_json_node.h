// A view of a JSON value that may be absent, for reading documents of which nothing is certain.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace tern::io {

// A value of the document, or none: absent and null are the same. Reading a member of what is no
// object gives none.
class Node {
 public:
  Node() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a document is a node
  Node(const nlohmann::json& value) : value_(value.is_null() ? nullptr : &value) {}

  [[nodiscard]] bool exists() const { return value_ != nullptr; }
  [[nodiscard]] Node operator[](const std::string& key) const {
    if (value_ == nullptr || !value_->is_object()) return {};
    const auto at = value_->find(key);
    return at == value_->end() ? Node() : Node(*at);
  }
  // nullptr: no text.
  [[nodiscard]] const std::string* text() const {
    return value_ == nullptr ? nullptr : value_->get_ptr<const std::string*>();
  }
  [[nodiscard]] bool is(const nlohmann::json& wanted) const {
    return value_ == nullptr ? wanted.is_null() : *value_ == wanted;
  }
  [[nodiscard]] bool is_list() const { return value_ != nullptr && value_->is_array(); }
  // The elements of a list; of anything else none.
  [[nodiscard]] std::vector<Node> elements() const {
    if (!is_list()) return {};
    return std::vector<Node>(value_->begin(), value_->end());
  }
  [[nodiscard]] std::optional<bool> boolean() const {
    if (value_ == nullptr || !value_->is_boolean()) return std::nullopt;
    return value_->get<bool>();
  }
  // A number from 0 up to, and without, `limit` <= 2^31.
  [[nodiscard]] std::optional<std::int32_t> id_below(std::size_t limit) const {
    if (value_ == nullptr || !value_->is_number_unsigned()) return std::nullopt;
    const auto number = value_->get<std::uint64_t>();
    if (number >= limit) return std::nullopt;
    return static_cast<std::int32_t>(number);
  }
  // false, "" and 0 are ways to switch an option off.
  [[nodiscard]] bool is_off() const {
    return value_ == nullptr || *value_ == nlohmann::json(false) || *value_ == nlohmann::json("") ||
           (value_->is_number() && *value_ == nlohmann::json(0));
  }
  // For a message.
  [[nodiscard]] std::string shown() const {
    if (const std::string* t = text()) return escape_for_message(*t);
    return value_ == nullptr ? "null" : escape_for_message(value_->dump());
  }

 private:
  const nlohmann::json* value_ = nullptr;
};

}  // namespace tern::io

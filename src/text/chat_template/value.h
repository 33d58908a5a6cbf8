// The values of the template language: what messages, tools and variables become, and what a
// template computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat_template/budget.h"

namespace tern::text::jinja {

// Who wrote a stretch of text. Special tokens are looked for in the template's own text only.
enum class Origin : std::uint8_t { kTemplate, kData };

enum class Kind : std::uint8_t {
  kMissing,  // an unset slot; never seen by a template
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kBigInt,  // digits of an integer beyond 64 bits: printed and compared, not calculated with
  kString,
  kList,
  kTuple,
  kDict,
  kView,  // keys(), values(), items() of a dictionary
  kRange,
  kGenerator,  // what lazy filters give: can be walked once
  kNamespace,
  kMacro,
  kFunction,
  kLoop,
  kCycler,
  kJoiner,
};

// Shared part of a value. Its bytes count against the budget of the rendering that made it; input
// and literals have none. `depth` bounds the recursion over nested values.
struct Object {
  Object(Budget* owner, std::size_t size, int nesting);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Budget* budget;
  std::size_t bytes;
  int depth;
};

struct StringData;
struct ListData;
struct DictData;
struct NamespaceData;

// Cheap to copy. Everything but namespaces, generators, loops, cyclers and joiners is immutable.
class Value {
 public:
  Value() = default;
  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value real(double value);
  static Value big_integer(std::string digits, Budget* budget = nullptr);
  // A text of one origin that counts against no budget. Bytes that are not UTF-8 become U+FFFD, so
  // that every text of the engine is valid.
  static Value string(std::string text, Origin origin = Origin::kData);
  static Value list(std::vector<Value> items, Budget* budget = nullptr);
  static Value tuple(std::vector<Value> items, Budget* budget = nullptr);
  static Value dict(std::shared_ptr<DictData> data);
  // `message` is what an attempt to use it says.
  static Value undefined(std::string message, FaultKind kind = FaultKind::kUndefined,
                         Budget* budget = nullptr);
  static Value space(NamespaceData* data);
  static Value object(Kind kind, std::shared_ptr<Object> data);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is(Kind kind) const { return kind_ == kind; }
  [[nodiscard]] bool is_missing() const { return kind_ == Kind::kMissing; }
  [[nodiscard]] bool is_undefined() const { return kind_ == Kind::kUndefined; }
  [[nodiscard]] bool is_none() const { return kind_ == Kind::kNone; }
  [[nodiscard]] bool is_string() const { return kind_ == Kind::kString; }
  [[nodiscard]] bool is_dict() const { return kind_ == Kind::kDict; }
  [[nodiscard]] bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }
  // Python's bool is an int.
  [[nodiscard]] bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }

  [[nodiscard]] bool as_bool() const { return integer_ != 0; }
  [[nodiscard]] std::int64_t as_integer() const { return integer_; }  // kInt and kBool
  [[nodiscard]] double as_real() const { return real_; }
  [[nodiscard]] const StringData& string() const;
  [[nodiscard]] std::string_view text() const;            // of a string, or the digits of a kBigInt
  [[nodiscard]] const std::vector<Value>& items() const;  // of a list or tuple
  [[nodiscard]] const DictData& dict() const;
  [[nodiscard]] NamespaceData& space() const { return *space_; }
  template <class T>
  [[nodiscard]] T& as() const {
    return static_cast<T&>(*object_);
  }
  [[nodiscard]] const Object* identity() const { return object_.get(); }
  [[nodiscard]] int depth() const { return object_ ? object_->depth : 0; }

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::kMissing;
  // NOLINTBEGIN(readability-identifier-naming): members of an unnamed union count as public
  union {
    std::int64_t integer_ = 0;
    double real_;
    NamespaceData* space_;  // owned by the rendering, so that cycles cannot leak
  };
  // NOLINTEND(readability-identifier-naming)
  std::shared_ptr<Object> object_;
};

// A text with the origin of each stretch. Code points are what templates count in.
struct Run {
  std::size_t end;  // byte behind the stretch
  Origin origin;
};

struct StringData final : Object {
  StringData(Budget* owner, std::string content, std::vector<Run> stretches, Origin from,
             bool safe);
  [[nodiscard]] bool ascii() const { return length == text.size(); }

  const std::string text;
  const std::vector<Run> runs;  // empty: all of it is `origin`
  const Origin origin;
  const bool markup;         // made by the filters safe or escape
  const std::size_t length;  // code points
};

struct ListData final : Object {
  ListData(Budget* owner, std::vector<Value> values);
  const std::vector<Value> items;
};

// Keys in order of insertion; 1, 1.0 and true are the same key.
class Dict {
 public:
  struct Entry {
    Value key;
    Value value;
  };
  // The budget (may be null) pays for comparing keys.
  [[nodiscard]] const Value* find(std::string_view key, Budget* budget = nullptr) const;
  [[nodiscard]] const Value* find(const Value& key, Budget* budget) const;
  // The first key stays when it is set again. Unhashable keys are refused.
  void set(Value key, Value value, Budget* budget);
  void set(std::string_view key, Value value, Origin origin = Origin::kTemplate);
  void clear();
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  [[nodiscard]] std::optional<std::size_t> position(std::string_view key, Budget* budget) const;
  [[nodiscard]] std::optional<std::size_t> position(const Value& key, Budget* budget) const;

  std::vector<Entry> entries_;
  // Built when a dictionary outgrows a linear search; a tree, because hashes can be attacked.
  std::map<std::string_view, std::size_t> index_;
};

struct DictData final : Object {
  DictData(Budget* owner, Dict content);
  const Dict dict;
};

// What an entry of a dictionary takes: itself, and a node of the index.
inline constexpr std::size_t kBytesPerEntry = sizeof(Dict::Entry) + 64;

// The only object a template can change: set ns.name = value.
struct NamespaceData {
  // Counts a new name; `name` is one that require_namespace_name() passed.
  void set(std::string_view name, Value value, Budget& budget);

  Dict attributes;
  std::size_t held = 0;  // bytes that count against the budget beside names and values
};

enum class ViewKind : std::uint8_t { kKeys, kValues, kItems };
struct ViewData final : Object {
  ViewData(Budget* owner, Value of, ViewKind which);
  const Value dict;
  const ViewKind view;
};

struct RangeData final : Object {
  RangeData(Budget* owner, std::int64_t from, std::int64_t to, std::int64_t by);
  const std::int64_t start, stop, step;
  std::int64_t count;
};

struct GeneratorData final : Object {
  GeneratorData(Budget* owner, std::vector<Value> values);
  std::vector<Value> items;
  std::size_t next = 0;
};

struct UndefinedData final : Object {
  UndefinedData(Budget* owner, std::string text, FaultKind fault)
      : Object(owner, sizeof(UndefinedData) + text.size(), 0),
        message(std::move(text)),
        kind(fault) {}
  const std::string message;
  const FaultKind kind;
};

struct DigitsData final : Object {
  DigitsData(Budget* owner, std::string text)
      : Object(owner, sizeof(DigitsData) + text.size(), 0), digits(std::move(text)) {}
  const std::string digits;  // with a sign when negative
};

struct CyclerData final : Object {
  CyclerData(Budget* owner, std::vector<Value> values);
  const std::vector<Value> items;
  std::size_t position = 0;
};

struct JoinerData final : Object {
  JoinerData(Budget* owner, Value text)
      : Object(owner, sizeof(JoinerData), text.depth() + 1), separator(std::move(text)) {}
  const Value separator;
  bool used = false;
};

inline const StringData& Value::string() const { return as<StringData>(); }
inline const std::vector<Value>& Value::items() const { return as<ListData>().items; }
inline const DictData& Value::dict() const { return as<DictData>(); }

// The name of the Python type, as messages quote it.
[[nodiscard]] std::string_view type_name(const Value& value);

// Builds a dictionary from text keys, for callers outside of a rendering.
[[nodiscard]] Value make_dict(Dict dict, Budget* budget = nullptr);

}  // namespace tern::text::jinja

// Values with a life of their own: macros and the `loop` variable.
#pragma once

#include <functional>

#include "text/chat_template/iterate.h"
#include "text/chat_template/value.h"

namespace tern::text::jinja {

struct MacroNode;
struct ForNode;
struct Frame;

// A macro, or the body of a call block: the code and the variables it sees. The frame belongs to
// the rendering and outlives every value.
struct MacroData final : Object {
  MacroData(Budget* owner, const MacroNode& what, Frame* where)
      : Object(owner, sizeof(MacroData), 0), node(what), frame(where) {}
  const MacroNode& node;
  Frame* const frame;
};

// The state of a running loop. Reads ahead only as far as it is asked to.
struct LoopData final : Object {
  // `accepts` is the loop's filter (may be empty).
  LoopData(Budget* owner, Value over, std::function<bool(const Value&)> accepts,
           std::int64_t outer_depth);

  // The next item; false at the end.
  [[nodiscard]] bool advance(Value& item);
  [[nodiscard]] std::int64_t count();
  [[nodiscard]] bool is_last();
  [[nodiscard]] const Value* peek();
  // The loop is over: lets go of its items, since the object may live on in a variable.
  void finish();
  [[nodiscard]] Value attribute(std::string_view name, bool& found);

  std::int64_t index0 = -1;
  std::int64_t depth0;
  Value current;
  Value before;
  Value changed;                       // what changed() saw last
  const ForNode* recursive = nullptr;  // callable when set
  Frame* frame = nullptr;

 private:
  [[nodiscard]] bool fetch(Value& item);

  std::optional<Iteration> source_;
  std::function<bool(const Value&)> accepts_;
  std::vector<Value> ahead_;  // items already read, in reverse order
  bool ended_ = false;
  std::optional<std::int64_t> count_;
};

[[nodiscard]] std::string_view macro_name(const Value& macro);
[[nodiscard]] std::string loop_text(const Value& loop);

}  // namespace tern::text::jinja

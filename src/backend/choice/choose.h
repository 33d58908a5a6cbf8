// Chooses one of several variants of a kernel: eligible, then pinned, then the prior order of the
// table; with a reason.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tern::backend {

// A row of a kernel's table as the choice sees it. Order is the prior: fastest first.
struct Candidate {
  std::string_view name;
  std::string missing;  // why it cannot run here ("AVX512F"); empty: eligible
};

struct Choice {
  std::size_t index = 0;
  std::string reason;  // "pinned", "first of 2 in the prior; lut512 needs AVX512F"
};

// --pin OP:VARIANT, checked for form.
struct Pin {
  std::string op;
  std::string variant;
};
[[nodiscard]] Result<std::vector<Pin>> parse_pins(std::span<const std::string> texts);

// Errors: kUsage for a pin of this op that names no candidate; kUnsupported when nothing is
// eligible. A pin on a variant that is not eligible is refused with a warning that says why and
// what runs instead.
[[nodiscard]] Result<Choice> choose(std::string_view op, std::span<const Candidate> candidates,
                                    std::span<const Pin> pins, std::vector<std::string>& warnings);

}  // namespace tern::backend

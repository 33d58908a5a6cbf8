// The caps of the template language: running into one is an error that names it, never a
// truncation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/limits.h"

namespace tern::text::jinja {

inline constexpr std::size_t kMaxSourceBytes = limits::kTemplateSourceBytes;
inline constexpr int kMaxParserDepth = limits::kTemplateParserDepth;
inline constexpr int kMaxCallDepth = limits::kTemplateCallDepth;
inline constexpr std::uint64_t kMaxSteps = limits::kTemplateSteps;
inline constexpr std::size_t kMaxOutputBytes = limits::kTemplateOutputBytes;
inline constexpr int kMaxJsonDepth = limits::kJsonDepth;
inline constexpr std::size_t kMaxJsonStringBytes = limits::kJsonStringBytes;

// One text made by a template, and everything that a template has made and still holds.
inline constexpr std::size_t kMaxStringBytes = limits::kTemplateStringBytes;
inline constexpr std::size_t kMaxLiveBytes = limits::kTemplateLiveBytes;
// Lists in lists: printing, comparing and freeing them recurses this deep at most.
inline constexpr int kMaxValueDepth = limits::kTemplateValueDepth;
// Nested expressions and statements across all calls: at most 700 KiB of stack in an optimised
// build.
inline constexpr int kMaxEvaluationDepth = limits::kTemplateEvaluationDepth;
inline constexpr std::int64_t kMaxRange = limits::kTemplateRange;
// Arguments of one call and parameters of one macro, which are compared each with each.
inline constexpr std::size_t kMaxArguments = limits::kTemplateArguments;
// Decimal digits of an integer that is read, as in Python.
inline constexpr std::size_t kMaxIntegerDigits = limits::kTemplateIntegerDigits;
// Work inside of an evaluation (copying text, comparing lists) in parts of a step, by measured
// time: a byte that is copied, searched or taken as a character, an item, a single operation.
inline constexpr std::uint64_t kWorkPerStep = 256;
inline constexpr std::uint64_t kWorkPerByte = 2;
inline constexpr std::uint64_t kWorkPerSearchedByte = 6;
inline constexpr std::uint64_t kWorkPerCharacter = 32;
inline constexpr std::uint64_t kWorkPerItem = 64;
inline constexpr std::uint64_t kWorkPerPiece = 32;

}  // namespace tern::text::jinja

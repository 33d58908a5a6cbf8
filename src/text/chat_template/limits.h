// The caps of the template language: running into one is an error that names it, never a
// truncation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tern::text::jinja {

inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
inline constexpr int kMaxParserDepth = 128;
inline constexpr int kMaxCallDepth = 64;
inline constexpr std::uint64_t kMaxSteps = 10'000'000;
inline constexpr std::size_t kMaxOutputBytes = std::size_t{16} << 20;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonStringBytes = std::size_t{64} << 20;

// One text made by a template, and everything that a template has made and still holds.
inline constexpr std::size_t kMaxStringBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxLiveBytes = std::size_t{128} << 20;
// Lists in lists: printing, comparing and freeing them recurses this deep at most.
inline constexpr int kMaxValueDepth = 256;
// Nested expressions and statements across all calls: at most 700 KiB of stack in an optimised
// build.
inline constexpr int kMaxEvaluationDepth = 1024;
inline constexpr std::int64_t kMaxRange = 100'000;
// Work inside of an evaluation (copying text, comparing lists) in parts of a step, by measured
// time: a byte that is copied, searched or taken as a character, an item, a single operation.
inline constexpr std::uint64_t kWorkPerStep = 256;
inline constexpr std::uint64_t kWorkPerByte = 2;
inline constexpr std::uint64_t kWorkPerSearchedByte = 6;
inline constexpr std::uint64_t kWorkPerCharacter = 32;
inline constexpr std::uint64_t kWorkPerItem = 32;
inline constexpr std::uint64_t kWorkPerPiece = 32;

}  // namespace tern::text::jinja

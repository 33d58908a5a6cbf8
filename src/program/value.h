// Typed values of a program: what an op reads and makes.
#pragma once

#include <cstdint>
#include <string>

#include "quant/format.h"

namespace tern::program {

using ValueId = std::uint32_t;   // index into Program::values
using WeightId = std::uint32_t;  // index into WeightSet::weights
using StateId = std::uint32_t;   // index into Program::states
inline constexpr ValueId kNoValue = 0xFFFFFFFFU;

// How many rows an activation has in one step. The numbers are known when the step is submitted
// (BatchBlock), the bound of both when the program is built.
enum class RowAxis : std::uint8_t {
  kRows,        // one per token of the step
  kOutputRows,  // one per requested output row
};

// [rows, width] floats.
struct RowsType {
  std::int64_t width = 0;
  RowAxis axis = RowAxis::kRows;
  bool operator==(const RowsType&) const = default;
};

// [rows, width] integers of `bits` bits with one scale per `group` inputs. How
// they lie in memory (integers, bit planes, lookup tables) is the backend's own affair.
struct QuantRowsType {
  std::int64_t width = 0;
  RowAxis axis = RowAxis::kRows;
  int bits = 12;
  int group = 128;
  bool operator==(const QuantRowsType&) const = default;
};

// A matrix [rows, inputs] or, with rows == 1, a vector [inputs], of the engine's weight set.
struct WeightType {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  quant::Format format = quant::Format::kF32;
  bool operator==(const WeightType&) const = default;
};

enum class ValueKind : std::uint8_t {
  kInput,       // the batch block
  kWeight,      // resident, shared by all programs of an engine
  kState,       // lives from step to step, counts only once the runtime commits it
  kActivation,  // made by exactly one op
};

enum class Element : std::uint8_t { kNone, kF32, kQuant, kWeight };

struct Value {
  ValueKind kind = ValueKind::kActivation;
  Element element = Element::kNone;
  RowsType rows;            // element == kF32
  QuantRowsType quant;      // element == kQuant
  WeightType weight;        // element == kWeight
  std::uint32_t index = 0;  // WeightId or StateId
  std::string name;
};

}  // namespace tern::program

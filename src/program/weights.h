// What a model multiplies by: declared once per engine, uploaded once, shared by all of its
// programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "program/value.h"
#include "quant/format.h"

namespace tern::program {

// How a weight is used. The resident layout is a pure function of (format, uses, device profile).
enum WeightUse : std::uint8_t {
  kUseMatmul = 1,  // y = W x
  kUseLookup = 2,  // rows by token id
  kUseVector = 4,  // a vector of floats (norms, biases, tables)
};

// Consecutive rows of a weight, as they lie in the file. Rows are contiguous.
struct WeightPart {
  std::string name;                  // tensor name, for messages
  std::span<const std::byte> bytes;  // empty in a plan for a model that is not there
  std::int64_t rows = 0;
};

// One matrix, possibly joined by rows from several tensors of the same format and width (q|k|v,
// gate|up). A vector has rows == 1, and its parts are joined end to end.
struct WeightDecl {
  std::string name;
  quant::Format format = quant::Format::kF32;
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::uint8_t uses = kUseMatmul;
  std::vector<WeightPart> parts;

  [[nodiscard]] std::uint64_t file_bytes() const {
    return quant::bytes_for(format,
                            static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(inputs));
  }
};

struct WeightSet {
  std::vector<WeightDecl> weights;
  // Kernels that the user asked for ("op:variant"): where one reads a layout of its own, the
  // weights are laid out for it.
  std::vector<std::string> pins;
  // Tells the owner of the bytes that these are not needed for now, so that a process holds one
  // copy; may be empty.
  std::function<void(std::span<const std::byte>)> release;

  WeightId add(WeightDecl decl) {
    weights.push_back(std::move(decl));
    return static_cast<WeightId>(weights.size() - 1);
  }
};

}  // namespace tern::program

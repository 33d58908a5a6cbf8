// Builds a program op by op. A model's folder reads like the paper's diagram because of it.
#pragma once

#include <string>

#include "program/program.h"

namespace tern::program {

class Builder {
 public:
  Builder(std::string name, Bucket bucket, int output_rows, const WeightSet& weights);

  // The ops that follow belong to this region.
  void region(std::string name, int index = -1);

  [[nodiscard]] ValueId weight(WeightId id);
  [[nodiscard]] ValueId kv_state(StateDecl decl);
  [[nodiscard]] std::uint32_t rope_table(RopeTable table);

  [[nodiscard]] ValueId embed(WeightId table);
  [[nodiscard]] ValueId rms_norm(ValueId x, WeightId weight, float eps);
  // The only way a model multiplies by a weight: rotations, joined matrices and adapters have their
  // home here.
  [[nodiscard]] ValueId linear(ValueId x, WeightId weight);
  [[nodiscard]] ValueId linear(ValueId x, WeightId weight, WeightId bias);
  [[nodiscard]] ValueId slice(ValueId x, std::int64_t begin, std::int64_t width);
  [[nodiscard]] ValueId rope(ValueId x, std::int64_t head_dim, std::uint32_t table,
                             RopePairs pairs);
  void kv_store(ValueId state, ValueId k, ValueId v);
  [[nodiscard]] ValueId attention(ValueId q, ValueId state, std::int64_t heads, float scale);
  [[nodiscard]] ValueId add(ValueId a, ValueId b);
  [[nodiscard]] ValueId swiglu(ValueId gate, ValueId up);
  [[nodiscard]] ValueId gather_rows(ValueId x);
  void output(std::string name, ValueId value);

  [[nodiscard]] const Program& program() const { return program_; }
  // Checks the program and hands it over.
  [[nodiscard]] Program finish() &&;

 private:
  ValueId append(OpKind kind);

  const WeightSet& weights_;
  Program program_;
  std::vector<ValueId> weight_values_;  // by WeightId
  std::uint32_t region_ = 0;
};

}  // namespace tern::program

// The pass `quantize`: one integer form per distinct value, shared by all products that read it.
#include <unordered_map>

#include "program/passes/passes.h"

namespace tern::program {

Program quantize(const Program& p, Activations activations, const KeepsFloats& keeps_floats) {
  Program out = p;
  if (activations == Activations::kF32) return out;
  out.ops.clear();
  std::unordered_map<ValueId, ValueId> quantized;  // float value -> its integer form
  for (Op op : p.ops) {
    if (Linear* linear = std::get_if<Linear>(&op.kind)) {
      const quant::Format format = p.at(linear->weight).weight.format;
      const bool wants = quant::info(format).kind != quant::FormatClass::kDense &&
                         !(keeps_floats && keeps_floats(p, *linear));
      if (wants && p.at(linear->x).element == Element::kF32) {
        auto [it, inserted] = quantized.try_emplace(linear->x, kNoValue);
        if (inserted) {
          Op q{Quantize{linear->x, 12, 128}, kNoValue, op.region};
          Value value = result_of(out, q);
          out.values.push_back(std::move(value));
          q.result = static_cast<ValueId>(out.values.size() - 1);
          it->second = q.result;
          out.ops.push_back(std::move(q));
        }
        linear->x = it->second;
      }
    }
    out.ops.push_back(std::move(op));
  }
  check(out);
  return out;
}

}  // namespace tern::program

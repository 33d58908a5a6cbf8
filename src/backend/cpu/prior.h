// What the cost model assumes of a processor and of the kernels on it, until something is measured.
#pragma once

#include <string_view>

#include "backend/choice/choose.h"
#include "backend/profile.h"
#include "base/cpu_features.h"
#include "quant/format.h"

namespace tern::cpu {

// The profile's own rates, else those of its instruction set and number of cores.
[[nodiscard]] backend::DeviceRates rates_of(const backend::DeviceProfile& profile);

// Share of the processor's peak that a kernel of this instruction set reaches.
[[nodiscard]] double own_efficiency(CpuFeatures needs, CpuFeatures have);
// The same of a library, by the processor that it takes this one for: "OpenBLAS 0.3.21 SkylakeX".
[[nodiscard]] double vendor_efficiency(std::string_view library, CpuFeatures have);

// A product by a weight, and how many rows are multiplied at a time.
struct ProductShape {
  quant::Format format = quant::Format::kF32;
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  bool is_float = true;  // activations; else 12-bit integers
  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};
[[nodiscard]] backend::Work own_work(const ProductShape& shape, std::int64_t rows,
                                     double efficiency);
[[nodiscard]] backend::Work vendor_work(const ProductShape& shape, std::int64_t rows,
                                        double efficiency);
// An op that passes over `width` numbers per row.
[[nodiscard]] backend::Work row_work(std::int64_t width, std::int64_t rows, double efficiency);

}  // namespace tern::cpu

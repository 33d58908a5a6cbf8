// The analytic prior: one formula for every variant of every op.
//
//   t = launches * t_launch + max(FLOPs / (peak * tile_eff * wave_eff), bytes / bandwidth)
//       + conversions + epilogue
//
// The constants of a device stand in DeviceRates and nowhere else, each once and with its unit.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "backend/choice/units.h"

namespace tern::backend {

// What the multiplications of a kernel are made of: it decides which peak bounds them.
enum class Arithmetic : std::uint8_t { kF32, kF16, kBf16, kInteger };
inline constexpr std::size_t kArithmetics = 4;
[[nodiscard]] std::string_view to_string(Arithmetic arithmetic);  // "f32"

// One constant per physical quantity, measured once per device or read from its profile.
struct DeviceRates {
  Seconds launch{1e-6};  // of one kernel (GPU) or one parallel section (CPU)
  std::array<FlopPerSecond, kArithmetics> peak{FlopPerSecond(1e9), FlopPerSecond(1e9),
                                               FlopPerSecond(1e9), FlopPerSecond(1e9)};
  BytesPerSecond bandwidth{1e9};
  int cores = 1;  // that tiles are spread over

  [[nodiscard]] FlopPerSecond peak_of(Arithmetic a) const {
    return peak[static_cast<std::size_t>(a)];
  }
  friend bool operator==(const DeviceRates&, const DeviceRates&) = default;
};

// What a variant does for one problem.
struct Work {
  double launches = 1;
  Flop flop{};
  Arithmetic arithmetic = Arithmetic::kF32;
  // Share of the peak that the variant reaches where all tiles are full and all cores have one.
  double kernel_efficiency = 1;
  Bytes bytes{};                                 // read and written by the product itself
  std::int64_t rows = 1, outputs = 1;            // of the result
  std::int64_t tile_rows = 1, tile_outputs = 1;  // of one unit of work
  Bytes conversion_bytes{};  // passes over memory before the product (a weight made wider)
  Bytes epilogue_bytes{};    // and after it (a bias that is not fused)
};

struct Prediction {
  Seconds total{};
  double tile_efficiency = 1;  // useful share of the elements of all tiles
  double wave_efficiency = 1;  // busy share of the cores while the tiles are worked off
};

// Rates are above 0.
[[nodiscard]] Prediction predict(const Work& work, const DeviceRates& rates);

}  // namespace tern::backend

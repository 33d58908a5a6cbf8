#include "backend/choice/cost_model.h"

#include <algorithm>

namespace tern::backend {
namespace {

std::int64_t tiles_of(std::int64_t count, std::int64_t tile) {
  return std::max<std::int64_t>(1, (count + tile - 1) / tile);
}

double share(std::int64_t useful, std::int64_t all) {
  return static_cast<double>(useful) / static_cast<double>(all);
}

}  // namespace

std::string_view to_string(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kF32:
      return "f32";
    case Arithmetic::kF16:
      return "f16";
    case Arithmetic::kBf16:
      return "bf16";
    case Arithmetic::kInteger:
      break;
  }
  return "integer";
}

Prediction predict(const Work& w, const DeviceRates& r) {
  const std::int64_t rows = std::max<std::int64_t>(w.rows, 1);
  const std::int64_t outputs = std::max<std::int64_t>(w.outputs, 1);
  const std::int64_t row_tiles = tiles_of(rows, w.tile_rows);
  const std::int64_t output_tiles = tiles_of(outputs, w.tile_outputs);
  const std::int64_t tiles = row_tiles * output_tiles;
  const std::int64_t waves = tiles_of(tiles, r.cores);
  Prediction p;
  p.tile_efficiency =
      share(rows, row_tiles * w.tile_rows) * share(outputs, output_tiles * w.tile_outputs);
  p.wave_efficiency = share(tiles, waves * r.cores);
  const FlopPerSecond rate =
      r.peak_of(w.arithmetic) * (w.kernel_efficiency * p.tile_efficiency * p.wave_efficiency);
  p.total = w.launches * r.launch + std::max(w.flop / rate, w.bytes / r.bandwidth) +
            w.conversion_bytes / r.bandwidth + w.epilogue_bytes / r.bandwidth;
  return p;
}

}  // namespace tern::backend

#include "backend/cpu/prior.h"

#include <algorithm>

namespace tern::cpu {
namespace {

using backend::Arithmetic;
using backend::Bytes;
using backend::DeviceRates;
using backend::Flop;
using backend::Work;

// Bits of the vectors that a set of features multiplies.
double vector_bits(CpuFeatures features) {
  if (features.contains({CpuFeature::kAvx512f})) return 512;
  if (features.contains({CpuFeature::kAvx2, CpuFeature::kFma})) return 256;
  return 128;
}

double weight_bytes(const ProductShape& s) {
  return static_cast<double>(quant::bytes_for(
      s.format, static_cast<std::uint64_t>(s.outputs) * static_cast<std::uint64_t>(s.inputs)));
}

Work product_work(const ProductShape& s, std::int64_t rows, double efficiency) {
  const auto n = static_cast<double>(s.outputs);
  const auto k = static_cast<double>(s.inputs);
  const auto m = static_cast<double>(rows);
  Work work;
  work.flop = Flop(2 * m * n * k);
  work.bytes = Bytes(weight_bytes(s) + 4 * m * (n + k));
  work.kernel_efficiency = efficiency;
  work.rows = rows;
  work.outputs = s.outputs;
  return work;
}

}  // namespace

DeviceRates rates_of(const backend::DeviceProfile& profile) {
  if (profile.rates) return *profile.rates;
  // Two multiply-adds a cycle at 2.5 GHz; integers in half the bits are twice as many.
  constexpr double kGigaflopPerBit = 2.5 * 2 * 2 / 32;
  constexpr double kGigabytesPerCore = 12;
  constexpr int kCoresThatSaturateMemory = 8;
  const int cores = std::max(profile.cores, 1);
  const backend::FlopPerSecond peak =
      backend::gigaflop_per_second(kGigaflopPerBit * vector_bits(profile.cpu) * cores);
  DeviceRates rates;
  rates.launch = backend::microseconds(cores > 1 ? 2 : 0.2);
  rates.peak = {peak, peak, peak, 2 * peak};
  rates.bandwidth =
      backend::gigabytes_per_second(kGigabytesPerCore * std::min(cores, kCoresThatSaturateMemory));
  rates.cores = cores;
  return rates;
}

double own_efficiency(CpuFeatures needs, CpuFeatures have) {
  constexpr double kVectors = 0.55;
  constexpr double kPortable = 0.01;  // sums in double precision, one at a time
  if (needs == CpuFeatures{}) return kPortable;
  return kVectors * vector_bits(needs) / vector_bits(have);
}

double vendor_efficiency(std::string_view library, CpuFeatures have) {
  constexpr double kShare = 0.8;
  const std::string_view core = library.substr(library.rfind(' ') + 1);
  double bits = 128;
  for (std::string_view wide : {"SkylakeX", "Cooperlake", "Sapphirerapids", "SapphireRapids"})
    if (core == wide) bits = 512;
  for (std::string_view half : {"Haswell", "Zen", "ZEN", "Excavator"})
    if (core == half) bits = 256;
  return kShare * std::min(1.0, bits / vector_bits(have));
}

Work own_work(const ProductShape& s, std::int64_t rows, double efficiency) {
  Work work = product_work(s, rows, efficiency);
  if (!s.is_float) work.arithmetic = Arithmetic::kInteger;
  work.tile_outputs = 16;  // what a thread is given at a time
  return work;
}

Work vendor_work(const ProductShape& s, std::int64_t rows, double efficiency) {
  Work work = product_work(s, rows, efficiency);
  work.launches = 1.5;  // the section, and the checks of the bridge
  // Its register tiles are eight rows high, and it copies its operands into an order of its own.
  work.tile_rows = 8;
  work.tile_outputs = 64;
  const double copied = 4 * static_cast<double>(s.outputs) * static_cast<double>(s.inputs);
  work.conversion_bytes = Bytes(s.format == quant::Format::kF32 ? copied : 1.5 * copied);
  return work;
}

Work row_work(std::int64_t width, std::int64_t rows, double efficiency) {
  const double numbers = static_cast<double>(width) * static_cast<double>(rows);
  Work work;
  work.flop = Flop(10 * numbers);
  work.bytes = Bytes(8 * numbers);
  work.kernel_efficiency = efficiency;
  work.rows = rows;
  work.outputs = width;
  work.tile_outputs = width;
  return work;
}

}  // namespace tern::cpu

// bench_choice: whether the choice on this machine is right. Calibrates dense products, picks 20
// shapes of which own kernels and the library each win at least five by over 10 %, measures those
// again, and asserts that the chosen variant is within 5 % of the better one everywhere.
//
// usage: bench_choice [THREADS] [quick]     exit code 1 when a shape is not, 77 without a library
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "backend/cpu/kernel_set.h"
#include "backend/cpu/product_choice.h"
#include "backend/registry.h"

namespace {

using namespace tern;

struct Shape {
  cpu::ProductShape product;
  std::int64_t rows = 0;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  struct Sides {
    std::int64_t outputs, inputs;
  };
  for (const quant::Format format : {quant::Format::kF32, quant::Format::kF16})
    for (const Sides& s : {Sides{960, 576}, Sides{1024, 1024}, Sides{2048, 2048}, Sides{64, 8192}})
      for (const std::int64_t rows : {1, 2, 4, 16, 64, 256})
        all.push_back({{format, s.outputs, s.inputs, true}, rows});
  return all;
}

backend::MeasuredTable measured(backend::Device& device, const cpu::ProductRules& rules,
                                const std::vector<Shape>& shapes, bool is_quick) {
  backend::CalibrationRequest request;
  request.is_quick = is_quick;
  for (const Shape& s : shapes)
    request.problems.push_back(cpu::problem_of(s.product, s.rows, rules.tiling));
  const backend::CalibrationOutcome outcome = device.calibrate(request, {}, {}).value();
  for (const std::string& line : outcome.skipped) fmt::print("skipped  {}\n", line);
  return outcome.table;
}

// Own time over the library's: above 1 the library is faster. 0: one of the two has no time.
double ratio(const backend::TableRow* row) {
  if (!row) return 0;
  const backend::VariantTime* own = row->find("avx2");
  const backend::VariantTime* library = row->find(cpu::kVendorVariant);
  return own && library ? own->median / library->median : 0;
}

// As many of either kind, the clearest first; then whatever is left.
std::vector<Shape> pick(const std::vector<Shape>& all, const backend::MeasuredTable& table,
                        const cpu::ProductRules& rules) {
  struct Rated {
    Shape shape;
    double ratio;
  };
  std::vector<Rated> rated;
  for (const Shape& s : all)
    if (const double r = ratio(table.find(cpu::problem_of(s.product, s.rows, rules.tiling))); r > 0)
      rated.push_back({s, r});
  std::stable_sort(rated.begin(), rated.end(),
                   [](const Rated& a, const Rated& b) { return a.ratio < b.ratio; });
  // A few more than are compared: some may find the machine busy.
  constexpr std::size_t kShapes = 24;
  constexpr std::size_t kEach = 8;
  std::vector<Shape> picked;
  for (std::size_t i = 0; i < kEach && 2 * i + 1 < rated.size(); ++i) {
    picked.push_back(rated[i].shape);
    picked.push_back(rated[rated.size() - 1 - i].shape);
  }
  // Between the two, those where the variants are closest.
  for (std::size_t i = kEach; i + kEach < rated.size(); ++i)
    if (rated[i].ratio > 0.8 && rated[i].ratio < 1.25) picked.push_back(rated[i].shape);
  picked.resize(std::min(picked.size(), kShapes));
  return picked;
}

int run(int threads, bool is_quick) {
  const auto backend = backend::make_backend("cpu").value();
  backend::DeviceProfile profile = backend->devices().front();
  if (threads > 0) profile.cores = threads;
  if (profile.vendor.empty()) {
    fmt::print("libopenblas is not on this machine: there is nothing to choose\n");
    return 77;
  }
  const auto device = backend->open(profile).value();
  cpu::ProductRules rules;
  rules.have = profile.cpu;
  rules.vendor = profile.vendor;
  rules.tiling = cpu::packed_tiling(profile.cpu, {});
  fmt::print("{}, {} threads, {}\n", profile.maker_name, profile.cores, profile.vendor);
  const std::vector<Shape> all = shapes();
  const backend::MeasuredTable table = measured(*device, rules, all, is_quick);
  const std::vector<Shape> picked = pick(all, table, rules);
  // The truth is the middle of three further calibrations: what else runs on a machine moves the
  // ratio of two variants that are close.
  std::vector<backend::MeasuredTable> again;
  for (int i = 0; i < 3; ++i) again.push_back(measured(*device, rules, picked, is_quick));
  int own_wins = 0, library_wins = 0, wrong = 0, compared = 0;
  fmt::print("{:<52} {:>10} {:>12} {:>8}  {:<9} {:>7}\n", "shape", "avx2 us", "openblas us",
             "ratio", "chosen", "behind");
  for (const Shape& s : picked) {
    const backend::Problem problem = cpu::problem_of(s.product, s.rows, rules.tiling);
    const cpu::ProductCandidates candidates = cpu::product_candidates(s.product, s.rows, rules);
    std::vector<std::string> warnings;
    const backend::Choice choice =
        backend::choose(problem, candidates.candidates, {table.rates(), &table, {}}, warnings)
            .value();
    std::vector<std::pair<double, const backend::TableRow*>> found;
    for (const backend::MeasuredTable& t : again)
      if (const double one = ratio(t.find(problem)); one > 0)
        found.emplace_back(one, t.find(problem));
    std::sort(found.begin(), found.end());
    const double r = found.empty() ? 0 : found[found.size() / 2].first;
    const backend::TableRow* row = found.empty() ? nullptr : found[found.size() / 2].second;
    if (r == 0 || compared == 20) continue;
    const std::string_view name = candidates.variants[choice.index].name;
    const backend::VariantTime* chosen = row->find(name);
    const double best = std::min(row->find("avx2")->median, row->find("openblas")->median).value();
    const double behind = chosen ? chosen->median.value() / best - 1 : 9.99;
    ++compared;
    own_wins += r < 1 / 1.1 ? 1 : 0;
    library_wins += r > 1.1 ? 1 : 0;
    wrong += behind > 0.05 ? 1 : 0;
    fmt::print("{:<52} {:>10.1f} {:>12.1f} {:>8.2f}  {:<9} {:>5.1f} %{}\n", describe(problem),
               row->find("avx2")->median.value() * 1e6, row->find("openblas")->median.value() * 1e6,
               r, name, behind * 100, behind > 0.05 ? "  WRONG" : "");
  }
  const bool is_good = compared >= 20 && own_wins >= 5 && library_wins >= 5 && wrong == 0;
  fmt::print(
      "\n{} shapes; over 10 % ahead: own {} times, the library {} times; chosen more than 5 % "
      "behind the better one: {} times: {}\n",
      compared, own_wins, library_wins, wrong, is_good ? "good" : "NOT GOOD");
  return is_good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::atoi(argv[1]) : 0, argc > 2 && std::string_view(argv[2]) == "quick");
  } catch (const tern::Error& error) {
    fmt::print(stderr, "bench_choice: {}\n", error.message());
    return 1;
  }
}

#include "backend/choice/measured_table.h"

#include <algorithm>
#include <cmath>

namespace tern::backend {
namespace {

bool is_same_bucket(const Problem& a, const Problem& b) {
  Problem of_bucket = b;
  of_bucket.m = rows_bucket_of(b.m);
  return a == of_bucket;
}

bool is_same_kind(const Problem& a, const Problem& b) {
  return a.op == b.op && a.dtypes == b.dtypes && a.layout == b.layout;
}

// How many doublings apart.
double doublings(std::int64_t a, std::int64_t b) {
  return std::fabs(std::log2(static_cast<double>(std::max<std::int64_t>(a, 1))) -
                   std::log2(static_cast<double>(std::max<std::int64_t>(b, 1))));
}

double distance(const Problem& a, const Problem& b) {
  return doublings(rows_bucket_of(a.m), rows_bucket_of(b.m)) + doublings(a.n, b.n) +
         doublings(a.k, b.k) + (a.alignment == b.alignment ? 0 : 0.5);
}

const VariantTime* fastest_of(const TableRow& row) {
  const auto best = std::min_element(
      row.times.begin(), row.times.end(),
      [](const VariantTime& a, const VariantTime& b) { return a.median < b.median; });
  return best == row.times.end() ? nullptr : &*best;
}

}  // namespace

const VariantTime* TableRow::find(std::string_view variant) const {
  for (const VariantTime& time : times)
    if (time.variant == variant) return &time;
  return nullptr;
}

bool beats(const VariantTime& challenger, const VariantTime& incumbent) {
  const Seconds lead = incumbent.median - challenger.median;
  return lead > kHysteresis * incumbent.median &&
         lead > kHysteresisSpreads * std::max(challenger.spread, incumbent.spread);
}

const TableRow* MeasuredTable::find(const Problem& problem) const {
  for (const TableRow& row : rows_)
    if (is_same_bucket(row.problem, problem)) return &row;
  return nullptr;
}

void MeasuredTable::put(TableRow row) {
  row.problem.m = rows_bucket_of(row.problem.m);
  const VariantTime* best = fastest_of(row);
  if (!best) return;
  const auto old = std::find_if(rows_.begin(), rows_.end(), [&row](const TableRow& each) {
    return each.problem == row.problem;
  });
  row.incumbent = best->variant;
  if (old == rows_.end()) {
    rows_.push_back(std::move(row));
    return;
  }
  const VariantTime* incumbent = row.find(old->incumbent);
  if (incumbent && !beats(*best, *incumbent)) row.incumbent = incumbent->variant;
  *old = std::move(row);
}

std::optional<double> MeasuredTable::neighbour_ratio(const Problem& problem,
                                                     std::string_view variant) const {
  struct Neighbour {
    double distance;
    double log_ratio;
  };
  std::vector<Neighbour> found;
  for (const TableRow& row : rows_) {
    if (!is_same_kind(row.problem, problem)) continue;
    const VariantTime* time = row.find(variant);
    if (time && time->predicted > Seconds())
      found.push_back({distance(row.problem, problem), std::log(time->median / time->predicted)});
  }
  if (found.empty()) return std::nullopt;
  // The few nearest, the nearer the heavier: a table of one shape says something about another one,
  // and less than a row of the shape itself.
  std::stable_sort(found.begin(), found.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.distance < b.distance; });
  constexpr std::size_t kNearest = 4;
  found.resize(std::min(found.size(), kNearest));
  double weights = 0;
  double sum = 0;
  for (const Neighbour& n : found) {
    const double weight = 1 / (n.distance + 0.25);
    weights += weight;
    sum += weight * n.log_ratio;
  }
  return std::exp(sum / weights);
}

}  // namespace tern::backend

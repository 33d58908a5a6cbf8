#include "backend/choice/measure.h"

#include <algorithm>
#include <cmath>

namespace tern::backend {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How a contender is run in every round.
struct Entrant {
  std::size_t index = 0;
  int chain = 1;
};

bool has_moved(const MachineState& a, const MachineState& b, double tolerance) {
  if (a.clock <= 0 || b.clock <= 0) return false;  // a machine that tells nothing
  return std::fabs(a.clock / b.clock - 1) > tolerance;
}

class Measurer {
 public:
  Measurer(std::span<const Contender> contenders, const MeasureOptions& options,
           MachineProbe& probe, const CancelToken& cancel)
      : contenders_(contenders), options_(options), probe_(probe), cancel_(cancel) {}

  Result<Measurement> run() {
    TERN_TRY(warm_up());
    result_.before = probe_.state();
    const int wanted = wanted_rounds();
    std::vector<std::vector<double>> rounds;
    std::vector<double> last;  // a good round, unless the next one shows that it was not
    MachineState before = result_.before;
    // As many again may be dropped before the machine counts as too restless.
    for (int i = 0; i <= 3 * wanted && static_cast<int>(rounds.size()) < wanted; ++i) {
      std::vector<double> times;
      const Seconds waited = probe_.waited();
      TERN_TRY(one_round(times));
      const bool is_loaded =
          (probe_.waited() - waited).value() > options_.load_tolerance * seconds_of(times);
      const MachineState after = probe_.state();
      // A thread that got no processor at all has its wait counted once it gets one.
      if (!last.empty() && is_loaded) ++result_.dropped;
      if (!last.empty() && !is_loaded) rounds.push_back(std::move(last));
      last.clear();
      if (is_loaded || has_moved(before, after, options_.clock_tolerance)) {
        ++result_.dropped;
      } else {
        last = std::move(times);
      }
      before = after;
    }
    result_.after = before;
    result_.rounds = static_cast<int>(rounds.size());
    if (result_.rounds < options_.least_rounds)
      return fail(ErrorCode::kDevice,
                  "in {} of {} rounds the clock of the machine moved by more than {:.0f} %, or "
                  "other work took its processors: it is busy or too hot; try again when it is "
                  "quiet",
                  result_.dropped, result_.dropped + result_.rounds,
                  options_.clock_tolerance * 100);
    summarise(rounds);
    return std::move(result_);
  }

 private:
  // The first run pays for pages and caches and is kept apart; the second one says how many ops
  // make a sample.
  Result<void> warm_up() {
    double best = 0;
    std::vector<double> second;
    for (const Contender& c : contenders_) {
      TERN_ASSIGN(const double first, timed(c, 1));
      result_.first_runs.push_back(Seconds(first));
      TERN_ASSIGN(const double again, timed(c, 1));
      second.push_back(std::min(first, again));
      if (best == 0 || second.back() < best) best = second.back();
    }
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      VariantTime time;
      time.variant = contenders_[i].variant;
      time.predicted = contenders_[i].predicted;
      result_.times.push_back(std::move(time));
      set_median(i, second[i]);
      result_.times[i].samples = 1;
      if (second[i] > options_.hopeless * best) continue;
      const double chain = std::ceil(options_.sample.value() / std::max(second[i], 1e-9));
      entrants_.push_back(
          {i, static_cast<int>(std::clamp(chain, 1.0, static_cast<double>(options_.most_chain)))});
      round_seconds_ += second[i] * entrants_.back().chain;
    }
    return {};
  }

  [[nodiscard]] double seconds_of(const std::vector<double>& times) const {
    double sum = 0;
    for (std::size_t e = 0; e < entrants_.size(); ++e) sum += times[e] * entrants_[e].chain;
    return sum;
  }

  [[nodiscard]] int wanted_rounds() const {
    const double affordable = options_.budget.value() / std::max(round_seconds_, 1e-9);
    return static_cast<int>(std::clamp(affordable, static_cast<double>(options_.least_rounds),
                                       static_cast<double>(options_.most_rounds)));
  }

  Result<void> one_round(std::vector<double>& times) {
    for (const Entrant& e : entrants_) {
      TERN_ASSIGN(const double seconds, timed(contenders_[e.index], e.chain));
      times.push_back(seconds / e.chain);
    }
    return {};
  }

  Result<double> timed(const Contender& contender, int chain) {
    if (cancel_.requested()) return fail(ErrorCode::kCancelled, "the calibration was cancelled");
    TERN_ASSIGN(const Seconds time, contender.run(chain));
    return time.value();
  }

  // Load makes a whole round slow and all of its times with it. So what counts is a time's ratio to
  // its round (the geometric mean of the round's times), and the level is that of the median round.
  void summarise(const std::vector<std::vector<double>>& rounds) {
    std::vector<double> levels;
    for (const std::vector<double>& round : rounds) {
      double logs = 0;
      for (const double t : round) logs += std::log(std::max(t, 1e-12));
      levels.push_back(std::exp(logs / static_cast<double>(round.size())));
    }
    const double level = median_of(levels);
    for (std::size_t e = 0; e < entrants_.size(); ++e) {
      std::vector<double> ratios;
      for (std::size_t r = 0; r < levels.size(); ++r) ratios.push_back(rounds[r][e] / levels[r]);
      const double middle = median_of(ratios);
      for (double& ratio : ratios) ratio = std::fabs(ratio - middle);
      set_median(entrants_[e].index, middle * level);
      VariantTime& time = result_.times[entrants_[e].index];
      time.spread = Seconds(median_of(ratios) * level);
      time.samples = result_.rounds;
    }
  }

  void set_median(std::size_t index, double seconds) {
    VariantTime& time = result_.times[index];
    time.median = Seconds(std::max(seconds, 1e-12));
    time.bandwidth = contenders_[index].bytes / time.median;
    time.rate = contenders_[index].flop / time.median;
  }

  std::span<const Contender> contenders_;
  const MeasureOptions& options_;
  MachineProbe& probe_;
  const CancelToken& cancel_;
  Measurement result_;
  std::vector<Entrant> entrants_;
  double round_seconds_ = 0;
};

}  // namespace

Result<Measurement> measure(std::span<const Contender> contenders, const MeasureOptions& options,
                            MachineProbe& probe, const CancelToken& cancel) {
  if (contenders.empty()) return fail(ErrorCode::kInternal, "[choice] nothing to measure");
  return Measurer(contenders, options, probe, cancel).run();
}

}  // namespace tern::backend

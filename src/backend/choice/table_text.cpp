// The text of a measured table. Whoever reads it trusts nothing: what does not parse is no table.
#include <charconv>
#include <cmath>

#include "backend/choice/measured_table.h"

namespace tern::backend {
namespace {

constexpr std::string_view kTitle = "tern choice table 1";
constexpr std::size_t kMostText = std::size_t{32} << 20;
constexpr std::size_t kMostRows = 65536;
constexpr std::size_t kMostTimes = 64;
constexpr std::size_t kMostName = 1000;
constexpr double kMostValue = 1e30;

// Tabs and newlines separate; nothing that is written contains one.
std::string plain(std::string_view text) {
  std::string out(text.substr(0, kMostName));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return out;
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

template <class Number>
bool parse(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_value(std::string_view text, double& value) {
  return parse(text, value) && std::isfinite(value) && value >= 0 && value <= kMostValue;
}

template <class Tag>
bool parse_quantity(std::string_view text, Quantity<Tag>& quantity, bool may_be_zero = false) {
  double value = 0;
  if (!parse_value(text, value) || (value == 0 && !may_be_zero)) return false;
  quantity = Quantity<Tag>(value);
  return true;
}

bool parse_name(std::string_view text, std::string& name, bool may_be_empty = false) {
  if (text.size() > kMostName || (text.empty() && !may_be_empty)) return false;
  name = text;
  return true;
}

bool parse_size(std::string_view text, std::int64_t& value) {
  return parse(text, value) && value >= 0 && value <= (std::int64_t{1} << 40);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<MeasuredTable> read(const TableKey& key) {
    if (text_.size() > kMostText) return bad("is longer than any table");
    if (!next() || line_ != kTitle) return bad("is not the title of a table of this form");
    TERN_TRY(read_key(key));
    TERN_TRY(read_rates());
    std::vector<TableRow> rows;
    for (;;) {
      if (!next()) return bad("is missing: the table has no end");
      const std::vector<std::string_view> fields = split(line_);
      if (fields[0] == "row") {
        if (rows.size() == kMostRows) return bad("is a row too many");
        TableRow row;
        if (!parse_row(fields, row)) return bad("is no row");
        rows.push_back(std::move(row));
      } else if (fields[0] == "time") {
        VariantTime time;
        if (rows.empty() || rows.back().times.size() == kMostTimes || !parse_time(fields, time) ||
            rows.back().find(time.variant))
          return bad("is no time");
        rows.back().times.push_back(std::move(time));
      } else {
        return finish(fields, std::move(rows));
      }
    }
  }

 private:
  bool next() {
    if (at_ >= text_.size()) return false;
    const std::size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) return false;
    line_ = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    return true;
  }

  [[nodiscard]] Error bad(std::string_view what) const {
    return fail(ErrorCode::kInvalidFile, "line {} of the choice table {}", number_, what);
  }

  Result<void> read_key(const TableKey& key) {
    std::string trouble;
    visit_key_fields(key, [&](std::string_view name, const std::string& value) {
      if (!trouble.empty()) return;
      const std::string prefix = fmt::format("key\t{}\t", name);
      if (!next() || !line_.starts_with(prefix)) {
        trouble = fmt::format("lacks the key '{}'", name);
      } else if (line_.substr(prefix.size()) != plain(value)) {
        trouble =
            fmt::format("has the {} '{}', this is '{}'", name, line_.substr(prefix.size()), value);
      }
    });
    if (!trouble.empty()) return bad(trouble);
    return {};
  }

  Result<void> read_rates() {
    if (!next()) return bad("is missing: the rates");
    const std::vector<std::string_view> f = split(line_);
    DeviceRates rates;
    bool is_good = f.size() == 4 + kArithmetics && f[0] == "rates" &&
                   parse_quantity(f[1], rates.launch, true) &&
                   parse_quantity(f[2], rates.bandwidth) && parse(f[3], rates.cores) &&
                   rates.cores > 0 && rates.cores < 1'000'000;
    for (std::size_t i = 0; is_good && i < kArithmetics; ++i)
      is_good = parse_quantity(f[4 + i], rates.peak[i]);
    if (!is_good) return bad("are no rates");
    rates_ = rates;
    return {};
  }

  static bool parse_row(const std::vector<std::string_view>& f, TableRow& row) {
    Problem& p = row.problem;
    return f.size() == 15 && parse_name(f[1], p.op) && parse_name(f[2], p.dtypes) &&
           parse_name(f[3], p.layout) && parse_size(f[4], p.n) && parse_size(f[5], p.k) &&
           parse_size(f[6], p.m) && p.m == rows_bucket_of(p.m) && parse(f[7], p.alignment) &&
           p.alignment > 0 &&
           p.alignment == alignment_class(static_cast<std::uint64_t>(p.alignment)) &&
           parse_name(f[8], row.incumbent) && parse_value(f[9], row.before.clock) &&
           parse_value(f[10], row.before.temperature) && parse_value(f[11], row.after.clock) &&
           parse_value(f[12], row.after.temperature) && parse_name(f[13], row.date, true) &&
           parse_name(f[14], row.revision, true);
  }

  static bool parse_time(const std::vector<std::string_view>& f, VariantTime& time) {
    return f.size() == 8 && parse_name(f[1], time.variant) && parse_quantity(f[2], time.median) &&
           parse_quantity(f[3], time.spread, true) && parse_quantity(f[4], time.predicted) &&
           parse(f[5], time.samples) && time.samples > 0 &&
           parse_quantity(f[6], time.bandwidth, true) && parse_quantity(f[7], time.rate, true);
  }

  Result<MeasuredTable> finish(const std::vector<std::string_view>& f, std::vector<TableRow> rows) {
    std::size_t count = 0;
    if (f.size() != 2 || f[0] != "end" || !parse(f[1], count) || count != rows.size())
      return bad("is neither a row nor the end");
    if (at_ != text_.size()) return bad("is followed by something");
    MeasuredTable table(rates_);
    for (TableRow& row : rows) {
      if (!row.find(row.incumbent)) return bad("closes a row whose incumbent has no time");
      if (table.find(row.problem)) return bad("closes a table with the same bucket twice");
      table.restore(std::move(row));
    }
    return table;
  }

  std::string_view text_;
  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t number_ = 0;
  DeviceRates rates_;
};

}  // namespace

std::string write_table(const TableKey& key, const MeasuredTable& table) {
  std::string out = std::string(kTitle) + "\n";
  visit_key_fields(key, [&out](std::string_view name, const std::string& value) {
    out += fmt::format("key\t{}\t{}\n", name, plain(value));
  });
  const DeviceRates& r = table.rates();
  out += fmt::format("rates\t{}\t{}\t{}", r.launch.value(), r.bandwidth.value(), r.cores);
  for (const FlopPerSecond peak : r.peak) out += fmt::format("\t{}", peak.value());
  out += "\n";
  for (const TableRow& row : table.rows()) {
    const Problem& p = row.problem;
    out +=
        fmt::format("row\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", plain(p.op),
                    plain(p.dtypes), plain(p.layout), p.n, p.k, p.m, p.alignment,
                    plain(row.incumbent), row.before.clock, row.before.temperature, row.after.clock,
                    row.after.temperature, plain(row.date), plain(row.revision));
    for (const VariantTime& t : row.times)
      out += fmt::format("time\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", plain(t.variant), t.median.value(),
                         t.spread.value(), t.predicted.value(), t.samples, t.bandwidth.value(),
                         t.rate.value());
  }
  return out + fmt::format("end\t{}\n", table.rows().size());
}

Result<MeasuredTable> read_table(const TableKey& key, std::string_view text) {
  return Reader(text).read(key);
}

}  // namespace tern::backend

// `tern perplexity`: how surprised the model is by a text, and how far it is from another run.
#include <cmath>

#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/file_text.h"
#include "cli/kl_statistics.h"
#include "cli/log_probabilities.h"
#include "cli/missing_bytes.h"
#include "cli/model_setup.h"
#include "cli/progress_bar.h"

namespace tern::cli {
namespace {

constexpr std::int64_t kDefaultWindow = 512;
constexpr std::int64_t kSmallestWindow = 4;
// Rows of logits that are held at a time: 128 MiB.
constexpr std::int64_t kMostLogits = std::int64_t{32} << 20U;

// The text as whole windows.
struct Windows {
  std::vector<std::int32_t> ids;  // count * size of them
  std::int64_t size = 0, count = 0;
  std::string text_sha256;

  [[nodiscard]] std::int64_t half() const { return size / 2; }
  [[nodiscard]] std::int64_t scored() const { return size - 1 - half(); }  // of each
  [[nodiscard]] std::span<std::int32_t> window(std::int64_t k) {
    return std::span(ids).subspan(static_cast<std::size_t>(k * size),
                                  static_cast<std::size_t>(size));
  }
};

Windows make_windows(const Tokenizer& tokenizer, const std::string& subject,
                     const std::string& text, std::int64_t size, const CancelToken& cancel) {
  Windows out;
  out.size = size;
  out.text_sha256 = sha256_of_text(text);
  out.ids = take(subject, tokenizer.encode(text, {true, ParseSpecial::kNone}, cancel));
  warn_missing_bytes(tokenizer, subject, text, out.ids);
  const auto tokens = static_cast<std::int64_t>(out.ids.size());
  out.count = tokens / size;
  if (out.count < 2) {
    fail(ErrorCode::kInvalidArgument, subject,
         "the text has {} tokens, 2 windows of {} need {}; give more text or a smaller -c", tokens,
         size, 2 * size);
  }
  out.ids.resize(static_cast<std::size_t>(out.count * size));
  if (tokenizer.adds_begin_token() && tokenizer.begin_token() >= 0) {
    for (std::int64_t k = 0; k < out.count; ++k) out.window(k)[0] = tokenizer.begin_token();
  }
  return out;
}

// Running sums of the negative log-likelihood.
class Estimate {
 public:
  void add(double nll) {
    ++count_;
    sum_ += nll;
    squares_ += nll * nll;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  [[nodiscard]] double perplexity() const { return std::exp(mean()); }
  // Of the perplexity, from the spread of the single tokens.
  [[nodiscard]] double standard_error() const {
    if (count_ < 2) return 0;
    const auto n = static_cast<double>(count_);
    const double variance = squares_ / n - mean() * mean();
    return variance > 0 ? std::sqrt(variance / (n - 1)) * perplexity() : 0;
  }

 private:
  std::int64_t count_ = 0;
  double sum_ = 0, squares_ = 0;
};

class Measurement {
 public:
  Measurement(const Context& context, const Model& model, Windows windows)
      : context_(context),
        path_(model.info().path),
        windows_(std::move(windows)),
        vocabulary_(model.info().vocabulary),
        session_(take(path_, model.session({}))) {
    const Arguments& arguments = context.arguments;
    if (!arguments.has(Flag::kKlBase)) return;
    const std::span<const std::int32_t> ids = windows_.ids;
    const auto bytes = std::as_bytes(ids);
    const KlHeader header = {
        static_cast<std::uint32_t>(windows_.size), static_cast<std::uint32_t>(vocabulary_),
        static_cast<std::uint32_t>(windows_.count), static_cast<std::uint32_t>(windows_.scored()),
        sha256_of_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()})};
    const std::string path = arguments.text(Flag::kKlBase);
    if (arguments.on(Flag::kKlDivergence)) {
      reader_.emplace(path, header);
    } else {
      writer_.emplace(path, arguments.on(Flag::kForce), header);
    }
  }

  void run(ProgressBar& bar) {
    const bool is_json = context_.arguments.on(Flag::kJson);
    for (std::int64_t k = 0; k < windows_.count; ++k) {
      score_window(windows_.window(k));
      estimates_.push_back(estimate_.perplexity());
      if (is_json) {
        bar.report({"perplexity", "windows", static_cast<std::uint64_t>(k + 1),
                    static_cast<std::uint64_t>(windows_.count), k + 1 == windows_.count});
      } else {
        context_.output.write(fmt::format("[{}]{:.4f},", k + 1, estimate_.perplexity()));
      }
    }
    if (writer_) writer_->commit();
  }

  [[nodiscard]] std::string result() const {
    return context_.arguments.on(Flag::kJson) ? json() : text();
  }
  [[nodiscard]] std::size_t finished() const { return estimates_.size(); }
  [[nodiscard]] std::int64_t windows() const { return windows_.count; }

 private:
  void score_window(std::span<const std::int32_t> ids) {
    const CancelToken& cancel = context_.interrupt.token();
    const auto half = static_cast<std::size_t>(windows_.half());
    session_.truncate(0);
    (void)take(path_, session_.evaluate(ids.first(half), 0, {}, cancel));
    const auto piece =
        static_cast<std::size_t>(std::max<std::int64_t>(1, kMostLogits / vocabulary_));
    // The last token is only predicted, never evaluated.
    for (std::size_t at = half; at + 1 < ids.size();) {
      const std::size_t count = std::min(piece, ids.size() - 1 - at);
      const std::vector<float> logits = take(
          path_,
          session_.evaluate(ids.subspan(at, count), static_cast<std::int64_t>(count), {}, cancel));
      for (std::size_t i = 0; i < count; ++i) {
        const auto width = static_cast<std::size_t>(vocabulary_);
        score_token(std::span(logits).subspan(i * width, width), ids[at + i + 1]);
      }
      at += count;
    }
  }

  void score_token(std::span<const float> logits, std::int32_t target) {
    RowScore score;
    try {
      score = score_row(logits, target);
    } catch (const Error& error) {
      throw about(path_, error);
    }
    estimate_.add(score.nll);
    if (writer_) writer_->add(logits, score);
    if (reader_) {
      reader_->next(base_row_);
      statistics_.add(base_row_, logits, score, target);
    }
  }

  [[nodiscard]] std::string text() const {
    std::string out = fmt::format("\nFinal estimate: PPL = {:.4f} +/- {:.5f}\n",
                                  estimate_.perplexity(), estimate_.standard_error());
    if (reader_) out += "\n" + statistics_.text();
    return out;
  }

  [[nodiscard]] std::string json() const {
    nlohmann::ordered_json json;
    json["ppl"] = estimate_.perplexity();
    json["ppl_stderr"] = estimate_.standard_error();
    json["nll_mean"] = estimate_.mean();
    json["n_ctx"] = windows_.size;
    json["n_chunks"] = estimates_.size();
    json["n_scored"] = estimate_.count();
    json["chunks"] = estimates_;
    json["text_sha256"] = windows_.text_sha256;
    if (reader_) json["kl"] = statistics_.json();
    return json.dump() + "\n";
  }

  const Context& context_;
  std::string path_;
  Windows windows_;
  std::int64_t vocabulary_;
  Session session_;
  Estimate estimate_;
  std::vector<double> estimates_;
  std::optional<KlBaseWriter> writer_;
  std::optional<KlBaseReader> reader_;
  KlBaseRow base_row_;
  KlStatistics statistics_;
};

std::int64_t window_size(const Arguments& arguments) {
  if (!arguments.has(Flag::kCtxSize)) return kDefaultWindow;
  const std::int64_t size = arguments.integer(Flag::kCtxSize);
  if (size < kSmallestWindow || size > 1'000'000'000) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kCtxSize),
         "a window of {} tokens is outside of {} .. 1000000000", size, kSmallestWindow);
  }
  return size;
}

void check_files(const Arguments& arguments, const std::string& model) {
  if (arguments.on(Flag::kKlDivergence) && !arguments.has(Flag::kKlBase)) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kKlDivergence),
         "say what to compare with: --kl-divergence-base FILE");
  }
  if (!arguments.has(Flag::kKlBase) || arguments.on(Flag::kKlDivergence)) {
    if (arguments.on(Flag::kForce)) {
      fail(ErrorCode::kUsage, arguments.spelling(Flag::kForce), "this run writes no file");
    }
    return;
  }
  const std::string base = arguments.text(Flag::kKlBase);
  WrittenFile::refuse_input(base, model);
  if (arguments.has(Flag::kFile)) WrittenFile::refuse_input(base, arguments.text(Flag::kFile));
}

}  // namespace

int perplexity_command(Context& context) {
  const Arguments& arguments = context.arguments;
  const std::string path = only_model(arguments);
  const EngineOptions engine_choice = engine_options(arguments);
  ModelOptions model_choice = model_options(arguments);
  const std::int64_t window = window_size(arguments);
  model_choice.context = window;
  check_files(arguments, path);
  const std::string source = arguments.has(Flag::kFile) ? arguments.text(Flag::kFile) : "-";
  if (source == "-" && context.terminal.in_is_terminal) {
    fail(ErrorCode::kUsage, "text", "there is none: give -f FILE or a pipe");
  }
  print_settings(context);
  const std::string text = read_file(source, InputLimit::kMeasured, context.interrupt);

  ProgressBar bar(
      progress_mode(arguments.text(Flag::kProgress), arguments.on(Flag::kQuiet), context.terminal));
  const Engine engine = Engine::create(engine_choice).value();
  const Model model =
      take(path, engine.open(path, model_choice, bar.callback(), context.interrupt.token()));
  bar.close();
  print_start(context, engine, model);
  const std::string subject = source == "-" ? "stdin" : source;
  Measurement measurement(
      context, model,
      make_windows(model.tokenizer(), subject, text, window, context.interrupt.token()));
  try {
    measurement.run(bar);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    bar.close();
    if (measurement.finished() > 0) context.output.write(measurement.result());
    print_line(fmt::format("interrupted: {} of {} windows were kept", measurement.finished(),
                           measurement.windows()));
    return context.interrupt.exit_code();
  }
  context.output.write(measurement.result());
  return kExitOk;
}

}  // namespace tern::cli

// Sessions: prompt in, tokens out, on one sequence of a model.
#include "tern/session.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "runtime/guarded.h"
#include "runtime/model_impl.h"
#include "runtime/sampler.h"
#include "runtime/sequence.h"
#include "text/stop_matcher.h"

namespace tern {

using runtime::OutputForm;
using runtime::StepOutputs;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Copies the logits of every row that has any. Rows that are not finite end the run with kNumeric.
class LogitsCopy : public runtime::OutputSink {
 public:
  explicit LogitsCopy(std::vector<float>& out) : out_(out) {}
  Result<void> take(const StepOutputs& outputs, std::int64_t, std::int64_t count, std::int64_t,
                    std::int64_t) override {
    const backend::OutputRows logits = outputs.at(0);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::span<const float> row = logits.row(r);
      if (!runtime::is_finite(row)) return Error(ErrorCode::kNumeric, "logits are not finite");
      out_.insert(out_.end(), row.begin(), row.end());
    }
    return {};
  }

 private:
  std::vector<float>& out_;
};

}  // namespace

struct Session::Impl {
  Impl(std::shared_ptr<const Model::Impl> m, std::int64_t context)
      : model(std::move(m)), sequence(*model->executables, *model->pages, context) {
    history.reserve(static_cast<std::size_t>(context) + 1);
  }

  std::shared_ptr<const Model::Impl> model;
  runtime::Sequence sequence;
  std::vector<std::int32_t> history;  // ids of the committed positions, and one that is pending
  bool has_pending = false;           // the last of history was chosen but not evaluated

  // Puts the session back to where it was, unless dismissed: errors and exceptions leave no trace.
  class Snapshot {
   public:
    explicit Snapshot(Impl& s)
        : s_(s),
          length_(s.sequence.length()),
          history_(s.history.size()),
          has_pending_(s.has_pending) {}
    ~Snapshot() {
      if (is_dismissed_) return;
      s_.sequence.truncate(length_);
      s_.history.resize(history_);
      s_.has_pending = has_pending_;
    }
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    void dismiss() { is_dismissed_ = true; }

   private:
    Impl& s_;
    std::int64_t length_;
    std::size_t history_;
    bool has_pending_;
    bool is_dismissed_ = false;
  };

  [[nodiscard]] Result<void> check_ids(std::span<const std::int32_t> ids) const;
  [[nodiscard]] Result<void> check_room(std::int64_t more) const;
  [[nodiscard]] Error numeric_error(OutputForm form) const {
    return runtime::numeric_error(*model->executables, form, sequence);
  }
};

Result<void> Session::Impl::check_ids(std::span<const std::int32_t> ids) const {
  const std::int64_t vocabulary = model->model->config().vocabulary;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocabulary)
      return fail(ErrorCode::kInvalidArgument,
                  "token id {} at position {} is outside of the vocabulary of {}", ids[i], i,
                  vocabulary);
  return {};
}

Result<void> Session::Impl::check_room(std::int64_t more) const {
  const std::int64_t have = sequence.context() - sequence.length();
  if (more <= have) return {};
  if (sequence.length() == 0)
    return fail(ErrorCode::kContextOverflow,
                "the prompt has {} tokens, the context holds {}; use a shorter prompt or a larger "
                "--ctx-size",
                more, sequence.context());
  return fail(ErrorCode::kContextOverflow,
              "{} more tokens do not fit: the context holds {} and {} are used; use a larger "
              "--ctx-size",
              more, sequence.context(), sequence.length());
}

namespace {

// One answer in the making.
class Generation : public runtime::OutputSink {
 public:
  Generation(Session::Impl& s, const GenerateRequest& request, runtime::Sampler sampler,
             text::StopMatcher stops, const TokenFn& on_text)
      : s_(s),
        request_(request),
        sampler_(std::move(sampler)),
        stops_(std::move(stops)),
        stream_(s.model->tokenizer->stream(true)),
        on_text_(on_text) {}

  Result<Answer> run(const ProgressFn& progress, const CancelToken& cancel);

 private:
  Result<void> take(const StepOutputs& outputs, std::int64_t first, std::int64_t count,
                    std::int64_t first_row, std::int64_t rows) override;
  Result<void> generate(const CancelToken& cancel);
  void choose(std::span<const float> logits);
  bool is_end(std::int32_t id) const;
  bool show(std::string_view text);
  Result<bool> accept(std::int32_t id);
  void finish_text();

  Session::Impl& s_;
  const GenerateRequest& request_;
  runtime::Sampler sampler_;
  text::StopMatcher stops_;
  TokenStream stream_;
  const TokenFn& on_text_;
  Answer answer_;
  Result<std::int32_t> next_ = Error(ErrorCode::kInternal, "nothing has been chosen yet");
  bool is_stopped_ = false;  // by a stop string or by the reader
};

bool Generation::is_end(std::int32_t id) const {
  const std::vector<std::int32_t>& ends = s_.model->tokenizer->end_tokens();
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}

void Generation::choose(std::span<const float> logits) {
  const bool may_end = !request_.ignore_end_tokens &&
                       static_cast<std::int64_t>(answer_.ids.size()) >= request_.min_tokens;
  static constexpr std::span<const std::int32_t> kNone;
  const std::span<const std::int32_t> forbidden =
      may_end ? kNone : std::span<const std::int32_t>(s_.model->tokenizer->end_tokens());
  next_ = sampler_.sample(logits, s_.history.size(), s_.history, forbidden);
}

Result<void> Generation::take(const StepOutputs& outputs, std::int64_t, std::int64_t count,
                              std::int64_t, std::int64_t) {
  if (count == 0) return {};
  choose(outputs.at(0).row(count - 1));
  return {};
}

bool Generation::show(std::string_view text) {
  if (text.empty()) return true;
  answer_.text += text;
  return !on_text_ || on_text_(text);
}

// True when the answer goes on after this token.
Result<bool> Generation::accept(std::int32_t id) {
  answer_.ids.push_back(id);
  if (is_end(id)) {
    answer_.finish = FinishReason::kEnd;
    return false;
  }
  const Result<std::string> text = stream_.push(id);
  TERN_TRY(text);
  const text::StopMatcher::Step step = stops_.push(*text);
  if (!show(step.text)) {
    answer_.finish = FinishReason::kCancelled;
    is_stopped_ = true;
    return false;
  }
  if (step.stop) {
    answer_.finish = FinishReason::kStopString;
    is_stopped_ = true;
    return false;
  }
  return true;
}

// Whatever was held back for an unfinished character or stop string is shown before the answer
// ends.
void Generation::finish_text() {
  if (is_stopped_) return;
  const text::StopMatcher::Step step = stops_.push(stream_.flush());
  show(step.text);
  if (step.stop) {
    answer_.finish = FinishReason::kStopString;
    return;
  }
  const text::StopMatcher::Step rest = stops_.flush();
  show(rest.text);
  if (rest.stop) answer_.finish = FinishReason::kStopString;
}

Result<void> Generation::generate(const CancelToken& cancel) {
  const std::int64_t limit = request_.max_tokens;
  while (true) {
    if (limit >= 0 && static_cast<std::int64_t>(answer_.ids.size()) >= limit) {
      answer_.finish = FinishReason::kLength;
      return {};
    }
    if (cancel.requested()) {
      answer_.finish = FinishReason::kCancelled;
      return {};
    }
    if (!next_.ok())
      return next_.error().code() == ErrorCode::kNumeric ? s_.numeric_error(OutputForm::kLast)
                                                         : next_.error();
    const std::int32_t id = *next_;
    s_.history.push_back(id);
    s_.has_pending = true;
    const Result<bool> goes_on = accept(id);
    TERN_TRY(goes_on);
    if (!*goes_on) return {};
    if (limit >= 0 && static_cast<std::int64_t>(answer_.ids.size()) >= limit) continue;
    if (s_.sequence.length() >= s_.sequence.context()) {
      answer_.finish = FinishReason::kContextFull;
      return {};
    }
    const Result<void> stepped =
        s_.sequence.extend(OutputForm::kLast, {&s_.history.back(), 1}, 1, {}, cancel, this);
    if (!stepped.ok()) {
      if (stepped.error().code() != ErrorCode::kCancelled) return stepped.error();
      answer_.finish = FinishReason::kCancelled;
      return {};
    }
    s_.has_pending = false;
  }
}

Result<Answer> Generation::run(const ProgressFn& progress, const CancelToken& cancel) {
  Session::Impl::Snapshot snapshot(s_);
  const std::size_t pending = s_.has_pending ? 1 : 0;
  const std::size_t start = s_.history.size() - pending;
  std::vector<std::int32_t> prompt(s_.history.begin() + static_cast<std::ptrdiff_t>(start),
                                   s_.history.end());
  prompt.insert(prompt.end(), request_.prompt.begin(), request_.prompt.end());
  if (prompt.empty())
    return fail(ErrorCode::kInvalidArgument, "the prompt is empty: there is nothing to evaluate");
  TERN_TRY(s_.check_ids(request_.prompt));
  TERN_TRY(s_.check_room(static_cast<std::int64_t>(prompt.size())));
  answer_.stats.prompt_tokens = static_cast<std::int64_t>(prompt.size());
  answer_.stats.cached_tokens = s_.sequence.length();
  s_.history.insert(s_.history.end(), request_.prompt.begin(), request_.prompt.end());
  const auto prompt_start = Clock::now();
  const Result<void> prefilled =
      s_.sequence.extend(OutputForm::kLast, prompt, 1, progress, cancel, this);
  answer_.stats.prompt_seconds = seconds_since(prompt_start);
  if (!prefilled.ok()) {
    if (prefilled.error().code() != ErrorCode::kCancelled) return prefilled.error();
    answer_.finish = FinishReason::kCancelled;  // and the snapshot puts the session back
    return std::move(answer_);
  }
  s_.has_pending = false;
  const auto generate_start = Clock::now();
  TERN_TRY(generate(cancel));
  finish_text();
  answer_.stats.generate_seconds = seconds_since(generate_start);
  answer_.stats.generated_tokens = static_cast<std::int64_t>(answer_.ids.size());
  snapshot.dismiss();
  return std::move(answer_);
}

}  // namespace

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Answer> Session::generate(const GenerateRequest& request, const TokenFn& on_text,
                                 const ProgressFn& progress, const CancelToken& cancel) {
  return runtime::guarded("[generate]", "for this request", [&]() -> Result<Answer> {
    Result<runtime::Sampler> sampler =
        runtime::Sampler::create(request.sampling, impl_->model->model->config().vocabulary);
    TERN_TRY(sampler);
    Result<text::StopMatcher> stops = text::StopMatcher::create(request.stop);
    TERN_TRY(stops);
    return Generation(*impl_, request, std::move(*sampler), std::move(*stops), on_text)
        .run(progress, cancel);
  });
}

Result<std::vector<float>> Session::evaluate(std::span<const std::int32_t> ids,
                                             std::int64_t last_rows, const ProgressFn& progress,
                                             const CancelToken& cancel) {
  return runtime::guarded("[evaluate]", "for the logits", [&]() -> Result<std::vector<float>> {
    TERN_TRY(impl_->check_ids(ids));
    Impl::Snapshot snapshot(*impl_);
    const std::int64_t pending = impl_->has_pending ? 1 : 0;
    TERN_TRY(impl_->check_room(static_cast<std::int64_t>(ids.size()) + pending));
    if (impl_->has_pending) {
      const std::int32_t id = impl_->history.back();
      TERN_TRY(impl_->sequence.extend(OutputForm::kLast, {&id, 1}, 0, {}, cancel, nullptr));
      impl_->has_pending = false;
    }
    std::vector<float> logits;
    const std::int64_t wanted =
        std::clamp<std::int64_t>(last_rows, 0, static_cast<std::int64_t>(ids.size()));
    logits.reserve(static_cast<std::size_t>(wanted * impl_->model->model->config().vocabulary));
    LogitsCopy copy(logits);
    // Rows without logits run in large steps, those with logits in steps that have room for them.
    const auto plain = wanted <= runtime::kLastRows ? std::size_t{0}
                                                    : ids.size() - static_cast<std::size_t>(wanted);
    const OutputForm form = wanted <= runtime::kLastRows ? OutputForm::kLast : OutputForm::kAll;
    if (plain > 0)
      TERN_TRY(impl_->sequence.extend(OutputForm::kLast, ids.first(plain), 0, progress, cancel,
                                      nullptr));
    TERN_TRY(impl_->sequence.extend(form, ids.subspan(plain), wanted, progress, cancel, &copy));
    impl_->history.insert(impl_->history.end(), ids.begin(), ids.end());
    snapshot.dismiss();
    return logits;
  });
}

void Session::truncate(std::int64_t positions) {
  if (positions >= static_cast<std::int64_t>(impl_->history.size())) return;
  impl_->sequence.truncate(positions);
  impl_->history.resize(static_cast<std::size_t>(impl_->sequence.length()));
  impl_->has_pending = false;
}

std::int64_t Session::position() const { return impl_->sequence.length(); }
std::int64_t Session::context_size() const { return impl_->sequence.context(); }

Result<Session> Model::session(const SessionOptions& options) const {
  return runtime::guarded("[session]", "for its tokens", [&]() -> Result<Session> {
    if (options.context < 0 || options.context > impl_->context)
      return fail(ErrorCode::kInvalidArgument,
                  "a session of {} positions was asked for, the model was opened with {}",
                  options.context, impl_->context);
    const std::int64_t context = options.context == 0 ? impl_->context : options.context;
    return Session(std::make_unique<Session::Impl>(impl_, context));
  });
}

}  // namespace tern

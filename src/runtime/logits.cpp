// Model::logits: logits and layer outputs of given ids, as data.
#include <algorithm>

#include "base/error.h"
#include "runtime/guarded.h"
#include "runtime/model_impl.h"
#include "runtime/sampler.h"
#include "runtime/sequence.h"

namespace tern {
namespace {

using runtime::OutputForm;
using runtime::StepOutputs;

// Collects the outputs of a run into tensors, by name. Outputs for every row grow with the rows,
// logits with the wanted ones.
class Collector : public runtime::OutputSink {
 public:
  Result<void> take(const StepOutputs& outputs, std::int64_t, std::int64_t, std::int64_t,
                    std::int64_t) override {
    const std::vector<program::Output>& names = outputs.program().outputs;
    if (tensors_.empty())
      for (const program::Output& o : names) tensors_.push_back({o.name, {0, 0}, {}});
    const backend::OutputRows logits = outputs.at(0);
    for (std::int64_t r = 0; r < logits.rows; ++r)
      if (!runtime::is_finite(logits.row(r)))
        return Error(ErrorCode::kNumeric, "logits are not finite");
    for (std::size_t i = 0; i < names.size(); ++i) append(tensors_[i], outputs.at(i));
    return {};
  }
  [[nodiscard]] std::vector<NamedTensor> tensors() && { return std::move(tensors_); }

 private:
  static void append(NamedTensor& t, const backend::OutputRows& rows) {
    t.shape[0] += rows.rows;
    t.shape[1] = rows.width;
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      const std::span<const float> row = rows.row(r);
      t.values.insert(t.values.end(), row.begin(), row.end());
    }
  }
  std::vector<NamedTensor> tensors_;
};

Result<void> check_request(const LogitsRequest& request, std::int64_t vocabulary,
                           std::int64_t context) {
  const auto count = static_cast<std::int64_t>(request.ids.size());
  if (count == 0) return fail(ErrorCode::kInvalidArgument, "there is no token id to evaluate");
  for (std::size_t i = 0; i < request.ids.size(); ++i)
    if (request.ids[i] < 0 || request.ids[i] >= vocabulary)
      return fail(ErrorCode::kInvalidArgument,
                  "token id {} at position {} is outside of the vocabulary of {}", request.ids[i],
                  i, vocabulary);
  if (count > context)
    return fail(ErrorCode::kContextOverflow, "{} token ids were given, the context holds {}", count,
                context);
  if (request.last < 0 || request.last > count)
    return fail(ErrorCode::kInvalidArgument, "the last {} rows were asked for, there are {}",
                request.last, count);
  if (request.decode < 0 || request.decode >= count)
    return fail(ErrorCode::kInvalidArgument,
                "--decode {}: expected 0 to {}, since at least one id is the prompt",
                request.decode, count - 1);
  return {};
}

}  // namespace

Result<std::vector<NamedTensor>> Model::logits(const LogitsRequest& request,
                                               const ProgressFn& progress,
                                               const CancelToken& cancel) const {
  return runtime::guarded("[logits]", "for the outputs", [&]() -> Result<std::vector<NamedTensor>> {
    TERN_TRY(check_request(request, impl_->model->config().vocabulary, impl_->context));
    const auto count = static_cast<std::int64_t>(request.ids.size());
    const std::int64_t wanted = request.last > 0     ? request.last
                                : request.decode > 0 ? request.decode
                                                     : count;
    const OutputForm form = request.taps ? OutputForm::kTaps : OutputForm::kAll;
    runtime::Sequence sequence(*impl_->executables, *impl_->pages, impl_->context);
    Collector collector;
    const std::span<const std::int32_t> ids(request.ids);
    const std::int64_t prompt = count - request.decode;
    const std::int64_t of_prompt = std::max<std::int64_t>(wanted - request.decode, 0);
    TERN_TRY(sequence.extend(form, ids.first(static_cast<std::size_t>(prompt)), of_prompt, progress,
                             cancel, &collector));
    for (std::int64_t i = prompt; i < count; ++i)
      TERN_TRY(sequence.extend(form, ids.subspan(static_cast<std::size_t>(i), 1),
                               count - i <= wanted ? 1 : 0, {}, cancel, &collector));
    return std::move(collector).tensors();
  });
}

}  // namespace tern

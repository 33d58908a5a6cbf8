#include "backend/cuda/device/executable.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tern::cuda {
namespace {

template <class T>
void put(std::byte* block, std::uint64_t offset, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(block + offset, values.data(), values.size() * sizeof(T));
}

}  // namespace

Result<std::unique_ptr<CudaExecutable>> CudaExecutable::make(
    std::shared_ptr<DeviceCore> core, std::shared_ptr<const CudaPlan> plan,
    std::shared_ptr<const CudaWeights> weights, std::shared_ptr<CudaStates> states,
    const ExecutableOptions& options) {
  std::unique_ptr<CudaExecutable> made(new CudaExecutable());
  made->core_ = std::move(core);
  made->plan_ = std::move(plan);
  made->weights_ = std::move(weights);
  made->states_ = std::move(states);
  made->options_ = options;
  made->options_.is_early =
      options.is_early && architecture_number(made->plan_->profile.architecture) >= 90;
  const std::lock_guard lock(made->core_->mutex);
  TERN_TRY(made->core_->context->make_current());
  TERN_TRY(made->bind());
  TERN_TRY(made->allocate());
  if (options.has_graph) made->capture_graph();
  return made;
}

CudaExecutable::~CudaExecutable() {
  // What is in flight still reads this memory.
  if (!is_in_flight || !core_) return;
  const std::lock_guard lock(core_->mutex);
  (void)core_->stream->synchronize();
}

Result<void> CudaExecutable::bind() {
  for (std::size_t op = 0; op < plan_->program.ops.size(); ++op) {
    first_launch_.push_back(launches_.size());
    for (Launch& launch :
         bind_op(*plan_, op, [this](program::WeightId id) { return weights_->offset(id); })) {
      TERN_ASSIGN(FunctionHandle* const function, core_->modules->function(launch.kernel));
      launches_.push_back(launch);
      functions_.push_back(function);
    }
  }
  first_launch_.push_back(launches_.size());
  return {};
}

Result<void> CudaExecutable::allocate() {
  Context& context = *core_->context;
  const Stream& stream = *core_->stream;
  TERN_ASSIGN(arena_, context.allocate(plan_->arena_bytes, "the activations of a program"));
  TERN_ASSIGN(block_, context.allocate(plan_->block.bytes, "the batch block"));
  TERN_TRY(stream.fill(arena_->address(), 0, static_cast<std::size_t>(plan_->arena_bytes)));
  TERN_TRY(stream.fill(block_->address(), 0, static_cast<std::size_t>(plan_->block.bytes)));
  TERN_ASSIGN(ring_, context.allocate_pinned(static_cast<std::size_t>(plan_->block.bytes) * kRing,
                                             "the batch blocks"));
  for (std::size_t i = 0; i < kRing; ++i) {
    TERN_ASSIGN(Event event, Event::make(core_->context, false));
    ring_events_.push_back(std::move(event));
  }
  TERN_ASSIGN(Event done, Event::make(core_->context, false));
  done_.emplace(std::move(done));
  for (const program::Output& output : plan_->program.outputs) {
    const backend::Placement& place = plan_->placements[output.value];
    const std::int64_t rows = plan_->rows_of(plan_->program.at(output.value).rows.axis);
    OutputBuffer buffer;
    TERN_ASSIGN(buffer.memory,
                context.allocate_pinned(static_cast<std::size_t>(place.row_stride * rows * 4),
                                        "the outputs of a program"));
    outputs_.push_back(std::move(buffer));
  }
  return stream.synchronize();
}

void CudaExecutable::capture_graph() {
  Result<Graph> graph =
      capture(*core_->stream, [this] { return append_launches(0, plan_->program.ops.size()); });
  if (graph.ok()) {
    graph_.emplace(std::move(*graph));
    return;
  }
  warnings_.push_back(fmt::format("{}: a step is launched kernel by kernel, which is slower",
                                  graph.error().message()));
}

std::int64_t CudaExecutable::rows_in(const program::BatchBlock& batch,
                                     program::RowAxis axis) const {
  return axis == program::RowAxis::kRows ? batch.rows()
                                         : static_cast<std::int64_t>(batch.output_rows.size());
}

Result<void> CudaExecutable::append_block(const program::BatchBlock& batch) {
  const std::size_t slot = ring_used_ % kRing;
  if (ring_used_ >= kRing) TERN_TRY(ring_events_[slot].wait());
  ++ring_used_;
  const auto bytes = static_cast<std::size_t>(plan_->block.bytes);
  std::byte* const block = ring_.data() + slot * bytes;
  const TernBatchCounts counts{static_cast<tern_u32>(batch.rows()),
                               static_cast<tern_u32>(batch.sequences.size()),
                               static_cast<tern_u32>(batch.output_rows.size()), 0};
  std::memcpy(block + plan_->block.counts, &counts, sizeof counts);
  put(block, plan_->block.ids, batch.ids);
  put(block, plan_->block.sequence, batch.sequence);
  put(block, plan_->block.position, batch.position);
  put(block, plan_->block.sequences, batch.sequences);
  put(block, plan_->block.pages, batch.pages);
  put(block, plan_->block.output_rows, batch.output_rows);
  TERN_TRY(core_->stream->copy_to_device(block_->address(), block, bytes));
  return core_->stream->record(ring_events_[slot]);
}

Result<void> CudaExecutable::append_launches(std::size_t begin, std::size_t end) {
  const Bases bases{weights_->address(), arena_->address(), block_->address()};
  for (std::size_t i = first_launch_[begin]; i < first_launch_[end]; ++i)
    TERN_TRY(cuda::launch(*core_->stream, functions_[i], launches_[i], bases,
                          options_.is_early && i > 0));
  return {};
}

Result<void> CudaExecutable::append_outputs(const program::BatchBlock& batch) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const program::ValueId v = plan_->program.outputs[i].value;
    const backend::Placement& place = plan_->placements[v];
    outputs_[i].rows = rows_in(batch, plan_->program.at(v).rows.axis);
    if (outputs_[i].rows == 0) continue;
    // The last row ends with its width, not with its stride: a slice may lie at the end.
    const std::int64_t floats =
        place.row_stride * (outputs_[i].rows - 1) + plan_->program.at(v).rows.width;
    TERN_TRY(core_->stream->copy_to_host(outputs_[i].memory.data(),
                                         arena_->address() + place.offset,
                                         static_cast<std::size_t>(floats) * 4));
  }
  return {};
}

Result<void> CudaExecutable::append(const program::BatchBlock& batch) {
  TERN_TRY(append_block(batch));
  TERN_TRY(graph_ ? graph_->launch(*core_->stream) : append_launches(0, plan_->program.ops.size()));
  TERN_TRY(append_outputs(batch));
  return core_->stream->record(*done_);
}

Result<backend::OutputRows> CudaExecutable::output(std::size_t index) const {
  if (index >= outputs_.size())
    return fail(ErrorCode::kInternal, "[output] there is no output {}", index);
  const program::ValueId v = plan_->program.outputs[index].value;
  return backend::OutputRows{reinterpret_cast<const float*>(outputs_[index].memory.data()),
                             outputs_[index].rows, plan_->program.at(v).rows.width,
                             plan_->placements[v].row_stride};
}

Result<std::vector<double>> CudaExecutable::time_steps(const program::BatchBlock& batch,
                                                       int repeats) {
  const std::lock_guard lock(core_->mutex);
  TERN_TRY(core_->context->make_current());
  TERN_TRY(append_block(batch));
  const std::size_t ops = plan_->program.ops.size();
  std::vector<Event> marks;
  for (std::size_t i = 0; i <= ops; ++i) {
    TERN_ASSIGN(Event event, Event::make(core_->context, true));
    marks.push_back(std::move(event));
  }
  std::vector<std::vector<double>> seconds(ops);
  for (int run = 0; run < std::max(repeats, 1); ++run) {
    TERN_TRY(core_->stream->record(marks[0]));
    for (std::size_t i = 0; i < ops; ++i) {
      TERN_TRY(append_launches(i, i + 1));
      TERN_TRY(core_->stream->record(marks[i + 1]));
    }
    TERN_TRY(core_->stream->synchronize());
    for (std::size_t i = 0; i < ops; ++i) {
      float milliseconds = 0;
      TERN_TRY(core_->context->check(core_->context->api().event_elapsed(
                                         &milliseconds, marks[i].handle(), marks[i + 1].handle()),
                                     "cuEventElapsedTime"));
      seconds[i].push_back(first_launch_[i] == first_launch_[i + 1]
                               ? 0.0
                               : static_cast<double>(milliseconds) * 1e-3);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& s : seconds) {
    std::nth_element(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(s.size() / 2), s.end());
    medians.push_back(s[s.size() / 2]);
  }
  return medians;
}

Result<bool> CudaExecutable::is_finite(program::ValueId v, std::int64_t rows) {
  const program::Value& value = plan_->program.at(v);
  if (value.element != program::Element::kF32 || rows == 0) return true;
  const backend::Placement& place = plan_->placements[v];
  std::vector<float> data(
      static_cast<std::size_t>(place.row_stride * (rows - 1) + value.rows.width));
  TERN_TRY(
      core_->stream->copy_to_host(data.data(), arena_->address() + place.offset, data.size() * 4));
  TERN_TRY(core_->stream->synchronize());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < value.rows.width; ++k)
      if (!std::isfinite(data[static_cast<std::size_t>(r * place.row_stride + k)])) return false;
  return true;
}

Result<std::string> CudaExecutable::first_non_finite(const program::BatchBlock& batch) {
  const std::lock_guard lock(core_->mutex);
  TERN_TRY(core_->context->make_current());
  TERN_TRY(append_block(batch));
  const program::Program& p = plan_->program;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    TERN_TRY(append_launches(i, i + 1));
    const program::Op& op = p.ops[i];
    if (op.result == program::kNoValue) continue;
    TERN_ASSIGN(const bool finite, is_finite(op.result, rows_in(batch, p.at(op.result).rows.axis)));
    if (finite) continue;
    const program::Region& region = p.regions[op.region];
    return region.index >= 0
               ? fmt::format("{} in {} {}", program::name_of(op), region.name, region.index)
               : fmt::format("{} in {}", program::name_of(op), region.name);
  }
  return std::string();
}

}  // namespace tern::cuda

#include "backend/metal/device/executable.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tern::metal {
namespace {

template <class T>
void put(std::byte* block, std::uint64_t offset, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(block + offset, values.data(), values.size() * sizeof(T));
}

std::int64_t rows_in(const program::BatchBlock& batch, program::RowAxis axis) {
  return axis == program::RowAxis::kRows ? batch.rows()
                                         : static_cast<std::int64_t>(batch.output_rows.size());
}

}  // namespace

Result<std::unique_ptr<MetalExecutable>> MetalExecutable::make(
    std::shared_ptr<DeviceCore> core, std::shared_ptr<const MetalPlan> plan,
    std::shared_ptr<const MetalWeights> weights, std::shared_ptr<MetalStates> states) {
  std::unique_ptr<MetalExecutable> made(new MetalExecutable());
  made->core_ = std::move(core);
  made->plan_ = std::move(plan);
  made->weights_ = std::move(weights);
  made->states_ = std::move(states);
  TERN_TRY(made->bind());
  TERN_TRY(made->allocate());
  return made;
}

MetalExecutable::~MetalExecutable() {
  if (step_) (void)step_->wait();
}

Result<void> MetalExecutable::bind() {
  for (const program::Op& op : plan_->program.ops) {
    first_launch_.push_back(launches_.size());
    for (Launch& launch :
         bind_op(*plan_, op, [this](program::WeightId w) { return weights_->place(w); })) {
      TERN_ASSIGN(const id<MTLComputePipelineState> state,
                  core_->pipelines->pipeline(launch.kernel));
      launches_.push_back(launch);
      pipelines_.push_back(state);
    }
  }
  first_launch_.push_back(launches_.size());
  return {};
}

Result<void> MetalExecutable::allocate() {
  const Context& context = *core_->context;
  TERN_ASSIGN(arena_, context.allocate(plan_->arena_bytes, "the activations of a program"));
  TERN_ASSIGN(block_, context.allocate(plan_->block.bytes, "the batch block"));
  std::memset(block_->contents(), 0, static_cast<std::size_t>(plan_->block.bytes));
  output_rows_.assign(plan_->program.outputs.size(), 0);
  return {};
}

// Nothing of this executable is in flight: the device reads the block of a step only.
void MetalExecutable::write_block(const program::BatchBlock& batch) {
  std::byte* const block = block_->contents();
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
  std::memset(arena_->contents() + plan_->status_offset, 0, 4);
  for (std::size_t i = 0; i < output_rows_.size(); ++i)
    output_rows_[i] = rows_in(batch, plan_->program.at(plan_->program.outputs[i].value).rows.axis);
}

Result<void> MetalExecutable::record(Commands& commands, std::size_t begin, std::size_t end) {
  Bases bases;
  bases.arena = arena_->buffer();
  bases.block = block_->buffer();
  // Kernels without a weight are given the arena in its place.
  bases.weights = [this](std::uint32_t index) {
    return index < weights_->buffers().size() ? weights_->buffers()[index]->buffer()
                                              : arena_->buffer();
  };
  for (std::size_t i = first_launch_[begin]; i < first_launch_[end]; ++i)
    TERN_TRY(commands.dispatch(pipelines_[i], launches_[i], bases));
  return {};
}

Result<backend::Submission> MetalExecutable::submit(const program::BatchBlock& batch) {
  if (step_)
    return fail(ErrorCode::kInternal, "[submit] the last step of this executable has not ended");
  TERN_ASSIGN(const std::unique_ptr<Commands> commands,
              Commands::begin(core_->context, fmt::format("step of {}", plan_->program.name)));
  write_block(batch);
  TERN_TRY(record(*commands, 0, plan_->program.ops.size()));
  const std::lock_guard lock(core_->mutex);
  step_ = commands->commit();
  encoders_of_step_ = commands->encoders();
  ticket_ = ++core_->last_ticket;
  return backend::Submission{ticket_};
}

Result<void> MetalExecutable::check_status() const {
  std::uint32_t status = 0;
  std::memcpy(&status, arena_->contents() + plan_->status_offset, 4);
  if (status == 0) return {};
  return fail(ErrorCode::kDevice, "[metal] a step of {} met a token id outside of its table",
              plan_->program.name);
}

std::optional<Result<void>> MetalExecutable::wait_until(backend::Deadline end) {
  std::optional<Result<void>> ended = step_->wait_until(end);
  if (!ended) return std::nullopt;
  step_.reset();
  last_ = ended->ok() ? check_status() : *ended;
  return last_;
}

const float* MetalExecutable::floats(program::ValueId v) const {
  return reinterpret_cast<const float*>(arena_->contents() + plan_->placements[v].offset);
}

Result<backend::OutputRows> MetalExecutable::output(std::size_t index) const {
  if (index >= output_rows_.size())
    return fail(ErrorCode::kInternal, "[output] there is no output {}", index);
  if (ticket_ == 0 || step_)
    return fail(ErrorCode::kInternal, "[output] there is no step that was waited for");
  TERN_TRY(last_);
  const program::ValueId v = plan_->program.outputs[index].value;
  return backend::OutputRows{floats(v), output_rows_[index], plan_->program.at(v).rows.width,
                             plan_->placements[v].row_stride};
}

Result<double> MetalExecutable::run_ops(std::size_t begin, std::size_t end) {
  TERN_ASSIGN(
      const std::unique_ptr<Commands> commands,
      Commands::begin(core_->context, fmt::format("op {} of {}", begin, plan_->program.name)));
  TERN_TRY(record(*commands, begin, end));
  const auto buffer = Owned<id<MTLCommandBuffer>>::shared(commands->buffer());
  TERN_TRY(commands->commit()->wait());
  return [buffer.get() GPUEndTime] - [buffer.get() GPUStartTime];
}

Result<std::vector<double>> MetalExecutable::time_steps(const program::BatchBlock& batch,
                                                        int repeats) {
  if (step_) return fail(ErrorCode::kInternal, "[time] a step is in flight");
  write_block(batch);
  const std::size_t ops = plan_->program.ops.size();
  std::vector<double> medians(ops, 0.0);
  for (std::size_t i = 0; i < ops; ++i) {
    std::vector<double> seconds;
    for (int run = 0; run < std::max(repeats, 1); ++run) {
      @autoreleasepool {
        TERN_ASSIGN(const double one, run_ops(i, i + 1));
        seconds.push_back(first_launch_[i] == first_launch_[i + 1] ? 0.0 : one);
      }
    }
    std::nth_element(seconds.begin(),
                     seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                     seconds.end());
    medians[i] = seconds[seconds.size() / 2];
  }
  return medians;
}

bool MetalExecutable::is_finite(program::ValueId v, std::int64_t rows) const {
  const program::Value& value = plan_->program.at(v);
  if (value.element != program::Element::kF32) return true;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = floats(v) + r * plan_->placements[v].row_stride;
    for (std::int64_t k = 0; k < value.rows.width; ++k)
      if (!std::isfinite(row[k])) return false;
  }
  return true;
}

std::string MetalExecutable::region_text(std::size_t op) const {
  const program::Program& p = plan_->program;
  const program::Region& region = p.regions[p.ops[op].region];
  return region.index >= 0
             ? fmt::format("{} in {} {}", program::name_of(p.ops[op]), region.name, region.index)
             : fmt::format("{} in {}", program::name_of(p.ops[op]), region.name);
}

Result<std::string> MetalExecutable::first_non_finite(const program::BatchBlock& batch) {
  if (step_) return fail(ErrorCode::kInternal, "[check] a step is in flight");
  write_block(batch);
  const program::Program& p = plan_->program;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    @autoreleasepool {
      TERN_TRY(run_ops(i, i + 1));
    }
    const program::ValueId result = p.ops[i].result;
    if (result == program::kNoValue || is_finite(result, rows_in(batch, p.at(result).rows.axis)))
      continue;
    return region_text(i);
  }
  return std::string();
}

}  // namespace tern::metal

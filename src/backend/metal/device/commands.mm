#include "backend/metal/device/commands.h"

namespace tern::metal {
namespace {

// What a command buffer that has ended says of its end.
Result<void> status_of(id<MTLCommandBuffer> buffer, const std::string& label, Context& context) {
  if ([buffer status] == MTLCommandBufferStatusCompleted) return {};
  NSError* error = [buffer error];
  const std::string reason = text_of(error);
  const NSInteger code = error == nil ? 0 : [error code];
  if (code == MTLCommandBufferErrorDeviceRemoved || code == MTLCommandBufferErrorAccessRevoked)
    context.mark_lost(reason);
  return fail(
      code == MTLCommandBufferErrorOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kDevice,
      "[metal] the command buffer '{}' failed with {}", label, reason);
}

}  // namespace

std::optional<Result<void>> Completion::wait_until(backend::Deadline end) const {
  std::unique_lock lock(mutex_);
  const auto has_ended = [this] { return result_.has_value(); };
  if (end == backend::kNoDeadline)
    ended_.wait(lock, has_ended);
  else
    ended_.wait_until(lock, end, has_ended);
  return result_;
}

Result<void> Completion::wait() const { return *wait_until(backend::kNoDeadline); }

void Completion::set(Result<void> result) {
  const std::lock_guard lock(mutex_);
  result_.emplace(std::move(result));
  ended_.notify_all();
}

Result<std::unique_ptr<Commands>> Commands::begin(std::shared_ptr<Context> context,
                                                  std::string label) {
  TERN_TRY(context->check_present());
  Owned<MTLCommandBufferDescriptor*> descriptor([[MTLCommandBufferDescriptor alloc] init]);
  [descriptor.get() setRetainedReferences:YES];
  [descriptor.get() setErrorOptions:MTLCommandBufferErrorOptionEncoderExecutionStatus];
  auto buffer = Owned<id<MTLCommandBuffer>>::shared(
      [context->queue() commandBufferWithDescriptor:descriptor.get()]);
  if (!buffer)
    return fail(ErrorCode::kDevice, "[metal] the device gives no command buffer for '{}'", label);
  [buffer.get() setLabel:ns_string(label)];
  return std::unique_ptr<Commands>(
      new Commands(std::move(context), std::move(label), std::move(buffer)));
}

Commands::~Commands() { end_encoder(); }

Result<id<MTLComputeCommandEncoder>> Commands::encoder() {
  if (!encoder_) {
    encoder_ = Owned<id<MTLComputeCommandEncoder>>::shared([buffer_.get() computeCommandEncoder]);
    if (!encoder_)
      return fail(ErrorCode::kDevice, "[metal] the command buffer '{}' gives no encoder", label_);
    [encoder_.get() setLabel:ns_string(label_)];
    ++encoders_;
  }
  return encoder_.get();
}

void Commands::end_encoder() {
  if (!encoder_) return;
  [encoder_.get() endEncoding];
  encoder_.reset();
}

Result<void> Commands::dispatch(id<MTLComputePipelineState> pipeline, const Launch& launch,
                                const Bases& bases) {
  if (launch.grid_x == 0 || launch.grid_y == 0) return {};
  TERN_ASSIGN(const id<MTLComputeCommandEncoder> encoder, this->encoder());
  [encoder setComputePipelineState:pipeline];
  [encoder setBuffer:bases.weights(launch.weight_buffer) offset:0 atIndex:0];
  [encoder setBuffer:bases.arena offset:0 atIndex:1];
  [encoder setBuffer:bases.block offset:0 atIndex:2];
  [encoder setBytes:launch.params.data() length:info(launch.kernel).params_bytes atIndex:3];
  [encoder setBuffer:bases.weights(launch.bias_buffer) offset:0 atIndex:4];
  [encoder dispatchThreadgroups:MTLSizeMake(launch.grid_x, launch.grid_y, 1)
          threadsPerThreadgroup:MTLSizeMake(launch.threads, 1, 1)];
  return {};
}

CompletionRef Commands::commit() {
  end_encoder();
  auto completion = std::make_shared<Completion>();
  // The handler runs on a thread of Metal's and is the last to hold what the commands used.
  auto kept = std::make_shared<std::vector<std::shared_ptr<const void>>>(std::move(retained_));
  const std::shared_ptr<Context> context = context_;
  const std::string label = label_;
  [buffer_.get() addCompletedHandler:^(id<MTLCommandBuffer> ended) {
    @autoreleasepool {
      Result<void> status = status_of(ended, label, *context);
      kept->clear();
      completion->set(std::move(status));
    }
  }];
  [buffer_.get() commit];
  buffer_.reset();
  return completion;
}

Result<backend::AllocationRef> Commands::workspace(std::uint64_t bytes) {
  if (workspace_ && workspace_->bytes() >= bytes) return workspace_;
  return fail(ErrorCode::kOutOfMemory,
              "[metal] a vendor product needs a workspace of {} bytes, the executable has {}",
              bytes, workspace_ ? workspace_->bytes() : 0);
}

void Commands::retain(std::shared_ptr<const void> object) {
  retained_.push_back(std::move(object));
}

Result<void> Commands::before_vendor_call() {
  end_encoder();
  return {};
}

}  // namespace tern::metal

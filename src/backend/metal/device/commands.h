// The commands of one submission: a command buffer, its one compute encoder, and what is known of
// its end.
#pragma once

#import <Metal/Metal.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/metal/device/context.h"
#include "backend/metal/kernels/kernels.h"
#include "backend/vendor_gemm.h"

namespace tern::metal {

// How a committed command buffer ended; set by its completion handler, from its status.
class Completion {
 public:
  // Nothing until it has ended or `end` has passed.
  [[nodiscard]] std::optional<Result<void>> wait_until(backend::Deadline end) const;
  [[nodiscard]] Result<void> wait() const;
  void set(Result<void> result);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  std::optional<Result<void>> result_;
};
using CompletionRef = std::shared_ptr<const Completion>;

// Where a launch's memory is.
struct Bases {
  std::function<id<MTLBuffer>(std::uint32_t)> weights;
  id<MTLBuffer> arena = nil;
  id<MTLBuffer> block = nil;
};

// One thread at a time. Every use is inside of the caller's autorelease pool.
class Commands final : public backend::EncodeContext {
 public:
  // label: names the command buffer in errors and tools. Errors: kDevice.
  [[nodiscard]] static Result<std::unique_ptr<Commands>> begin(std::shared_ptr<Context> context,
                                                               std::string label);
  ~Commands() override;  // what was not committed is thrown away

  // The compute encoder, opened if none is open. Errors: kDevice.
  [[nodiscard]] Result<id<MTLComputeCommandEncoder>> encoder();
  [[nodiscard]] Result<void> dispatch(id<MTLComputePipelineState> pipeline, const Launch& launch,
                                      const Bases& bases);
  [[nodiscard]] id<MTLCommandBuffer> buffer() const { return buffer_.get(); }
  // Encoders opened so far.
  [[nodiscard]] int encoders() const { return encoders_; }

  // Ends the encoder and hands the buffer over; nothing may be added afterwards.
  [[nodiscard]] CompletionRef commit();

  void set_workspace(backend::AllocationRef workspace) { workspace_ = std::move(workspace); }
  Result<backend::AllocationRef> workspace(std::uint64_t bytes) override;
  void retain(std::shared_ptr<const void> object) override;
  Result<void> before_vendor_call() override;

 private:
  Commands(std::shared_ptr<Context> context, std::string label, Owned<id<MTLCommandBuffer>> buffer)
      : context_(std::move(context)), label_(std::move(label)), buffer_(std::move(buffer)) {}
  void end_encoder();

  const std::shared_ptr<Context> context_;
  const std::string label_;
  Owned<id<MTLCommandBuffer>> buffer_;
  Owned<id<MTLComputeCommandEncoder>> encoder_;
  int encoders_ = 0;
  backend::AllocationRef workspace_;
  std::vector<std::shared_ptr<const void>> retained_;
};

}  // namespace tern::metal

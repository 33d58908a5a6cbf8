// Queues and command buffers. A committed command buffer runs on its queue's thread, in order, so
// that mistakes in the ordering of host and GPU are real.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "metal_objects.h"

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Dispatches of a concurrent encoder may run in any order between two barriers.
void reorder_concurrent(std::vector<swm::Operation>& operations, const swm::Options& options) {
  if (options.order == swm::Order::kForward) return;
  std::mt19937_64 random(options.seed);
  for (size_t i = 0; i < operations.size(); i++) {
    size_t end = i;
    while (end < operations.size() && operations[end].is_concurrent &&
           !operations[end].is_barrier && operations[end].encoder == operations[i].encoder)
      end++;
    const auto first = operations.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = operations.begin() + static_cast<std::ptrdiff_t>(end);
    if (end > i + 1 && options.order == swm::Order::kReverse) std::reverse(first, last);
    if (end > i + 1 && options.order == swm::Order::kRandom) std::shuffle(first, last, random);
    i = std::max(end, i + 1) - 1;
  }
}

// The queue may go on its own thread, so that thread shares its state.
void run_queue(std::shared_ptr<swm::QueueState> state) {
  for (;;) {
    SwmCommandBuffer* next = nil;
    {
      std::unique_lock<std::mutex> lock(state->mutex);
      state->changed.wait(lock, [&] { return state->is_closed || !state->waiting.empty(); });
      if (state->waiting.empty()) return;
      next = state->waiting.front();
      state->waiting.pop_front();
    }
    @autoreleasepool {
      [next run];
      [next release];
    }
  }
}

void call_all(std::vector<MTLCommandBufferHandler>& handlers, SwmCommandBuffer* commandBuffer) {
  for (MTLCommandBufferHandler handler : handlers) {
    handler(commandBuffer);
    _Block_release((void*)handler);
  }
  handlers.clear();
}

}  // namespace

@implementation MTLCommandBufferDescriptor
@synthesize retainedReferences = _retainedReferences, errorOptions = _errorOptions;
- (instancetype)init {
  _retainedReferences = YES;
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLCommandBufferDescriptor* copy = [MTLCommandBufferDescriptor new];
  copy.retainedReferences = _retainedReferences;
  copy.errorOptions = _errorOptions;
  return copy;
}
@end

@implementation SwmCommandBuffer
- (void)checkEncoding {
  if (_status >= MTLCommandBufferStatusCommitted)
    swm::misuse("encoding into a command buffer that is committed");
  if (_isEncoding) swm::misuse("a second encoder, or a commit, while an encoder is open");
}
- (void)use:(id)object {
  if (_retainsReferences) _retained.push_back([object retain]);
  if ([object isKindOfClass:[SwmBuffer class]]) {
    // Under unretained references a buffer counts as used from here on.
    ++((SwmBuffer*)object)->_inFlight;
    _buffers.push_back((SwmBuffer*)object);
  }
}
- (int)nextEncoder {
  return _encoders++;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return swm::make_compute_encoder(self, MTLDispatchTypeSerial);
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  return swm::make_compute_encoder(self, type);
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return swm::make_blit_encoder(self);
}
- (void)addHandler:(MTLCommandBufferHandler)block
                to:(std::vector<MTLCommandBufferHandler>&)handlers {
  if (!block) swm::misuse("a nil handler");
  if (self.status >= MTLCommandBufferStatusCommitted) swm::misuse("a handler added after commit");
  handlers.push_back((MTLCommandBufferHandler)_Block_copy((void*)block));
}
- (void)addScheduledHandler:(MTLCommandBufferHandler)block {
  [self addHandler:block to:_scheduledHandlers];
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  [self addHandler:block to:_completedHandlers];
}
- (void)enqueue {
  if (_status != MTLCommandBufferStatusNotEnqueued) swm::misuse("enqueue: already enqueued");
  _status = MTLCommandBufferStatusEnqueued;
}
- (void)commit {
  if (_isEncoding) swm::misuse("commit while an encoder is open");
  if (_status.exchange(MTLCommandBufferStatusCommitted) >= MTLCommandBufferStatusCommitted)
    swm::misuse("commit: already committed");
  _commitTime = now();
  [_queue push:self];
}
- (void)waitUntilScheduled {
  if (_status < MTLCommandBufferStatusCommitted) swm::misuse("waitUntilScheduled before commit");
  while (_status < MTLCommandBufferStatusScheduled)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}
- (void)waitUntilCompleted {
  if (_status < MTLCommandBufferStatusCommitted) swm::misuse("waitUntilCompleted before commit");
  std::unique_lock<std::mutex> lock(_mutex);
  _changed.wait(lock, [&] { return _isFinished; });  // after the handlers, as Metal does
}
- (MTLCommandBufferStatus)status {
  return _status.load(std::memory_order_acquire);
}
- (NSError*)error {
  const std::lock_guard<std::mutex> lock(_mutex);
  return [[_error retain] autorelease];
}
- (void)failWithCode:(NSInteger)code text:(const std::string&)text {
  NSError* error = nil;
  const std::string label = _label ? std::string(" ") + _label.UTF8String : "";
  swm::set_error(&error, MTLCommandBufferErrorDomain, code, "command buffer" + label + ": " + text);
  const std::lock_guard<std::mutex> lock(_mutex);
  _error = [error retain];
}
- (bool)runOperations {
  std::string text;
  if (swm::control().fails(SWM_COMMIT)) {
    NSInteger code = swm::control().commit_error(text);
    if (swm::control().is_lost()) code = MTLCommandBufferErrorDeviceRemoved, text = "device lost";
    [self failWithCode:code text:text];
    return false;
  }
  reorder_concurrent(_operations, swm::control().options());
  for (const swm::Operation& o : _operations) {
    if (!o.run || o.run(text)) continue;
    [self failWithCode:MTLCommandBufferErrorInternal
                  text:(o.label.empty() ? "" : "encoder " + o.label + ": ") + text];
    return false;
  }
  return true;
}
- (void)run {
  _status.store(MTLCommandBufferStatusScheduled, std::memory_order_release);
  call_all(_scheduledHandlers, self);
  const double start = now();
  const bool ok = [self runOperations];
  for (SwmBuffer* buffer : _buffers) --buffer->_inFlight;
  _buffers.clear();
  {
    const std::lock_guard<std::mutex> lock(_mutex);
    _startTime = start;
    _endTime = now();
  }
  _status.store(ok ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusError,
                std::memory_order_release);
  call_all(_completedHandlers, self);
  _operations.clear();
  for (id object : _retained) [object release];
  _retained.clear();
  const std::lock_guard<std::mutex> lock(_mutex);
  _isFinished = true;
  _changed.notify_all();
}
- (double)time:(const double&)field {
  const std::lock_guard<std::mutex> lock(_mutex);
  return field;
}
- (CFTimeInterval)GPUStartTime {
  return [self time:_startTime];
}
- (CFTimeInterval)GPUEndTime {
  return [self time:_endTime];
}
- (CFTimeInterval)kernelStartTime {
  return [self time:_commitTime];
}
- (CFTimeInterval)kernelEndTime {
  return [self time:_startTime];
}
- (BOOL)retainedReferences {
  return _retainsReferences;
}
- (id<MTLCommandQueue>)commandQueue {
  return _queue;
}
- (void)dealloc {
  if (_isEncoding) swm::misuse("a command buffer is deallocated while an encoder is open");
  for (SwmBuffer* buffer : _buffers) --buffer->_inFlight;  // never committed
  for (id object : _retained) [object release];
  for (auto* handlers : {&_scheduledHandlers, &_completedHandlers})
    for (MTLCommandBufferHandler handler : *handlers) _Block_release((void*)handler);
  [_error release];
  [_queue release];
  [_label release];
  [super dealloc];
}
SWM_LABEL
SWM_DEVICE
@end

@implementation SwmQueue
- (void)push:(SwmCommandBuffer*)commandBuffer {
  [commandBuffer retain];
  const std::lock_guard<std::mutex> lock(_state->mutex);
  if (!_state->has_thread) std::thread(run_queue, _state).detach();
  _state->has_thread = true;
  _state->waiting.push_back(commandBuffer);
  _state->changed.notify_one();
}
- (id<MTLCommandBuffer>)commandBufferRetaining:(BOOL)retains {
  if (swm::control().fails(SWM_COMMAND_BUFFER) && !swm::control().is_lost()) return nil;
  SwmCommandBuffer* c = [SwmCommandBuffer new];
  c->_queue = [self retain];
  c->_retainsReferences = retains;
  return [c autorelease];
}
- (id<MTLCommandBuffer>)commandBuffer {
  return [self commandBufferRetaining:YES];
}
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences {
  return [self commandBufferRetaining:NO];
}
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor*)descriptor {
  if (!descriptor) swm::misuse("commandBufferWithDescriptor: nil");
  return [self commandBufferRetaining:descriptor.retainedReferences];
}
- (void)dealloc {
  {
    const std::lock_guard<std::mutex> lock(_state->mutex);
    _state->is_closed = true;
    _state->changed.notify_one();
  }
  [_label release];
  [super dealloc];
}
SWM_LABEL
SWM_DEVICE
@end

#include "backend/cuda/core/stream.h"

#include <utility>

namespace tern::cuda {

Result<Event> Event::make(std::shared_ptr<Context> context, bool has_time) {
  TERN_TRY(context->make_current());
  EventHandle* handle = nullptr;
  const unsigned flags = has_time ? kEventTiming : kEventNoTiming;
  TERN_TRY(context->check(context->api().event_create(&handle, flags), "cuEventCreate"));
  return Event(std::move(context), handle);
}

Event::~Event() {
  if (handle_ != nullptr && context_->make_current().ok())
    (void)context_->api().event_destroy(handle_);
}

Event::Event(Event&& other) noexcept
    : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}

Result<bool> Event::has_passed() const {
  TERN_TRY(context_->make_current());
  const Status status = context_->api().event_query(handle_);
  if (status == kNotReady) return false;
  TERN_TRY(context_->check(status, "cuEventQuery"));
  return true;
}

Result<void> Event::wait() const {
  TERN_TRY(context_->make_current());
  return context_->check(context_->api().event_synchronize(handle_), "cuEventSynchronize");
}

Result<Stream> Stream::make(std::shared_ptr<Context> context) {
  TERN_TRY(context->make_current());
  StreamHandle* handle = nullptr;
  TERN_TRY(
      context->check(context->api().stream_create(&handle, kStreamNonBlocking), "cuStreamCreate"));
  return Stream(std::move(context), handle);
}

Stream::~Stream() {
  if (handle_ == nullptr || !context_->make_current().ok()) return;
  (void)context_->api().stream_synchronize(handle_);
  (void)context_->api().stream_destroy(handle_);
}

Stream::Stream(Stream&& other) noexcept
    : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}

Result<void> Stream::copy_to_device(Address to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return {};
  return context_->check(context_->api().copy_to_device(to, from, bytes, handle_),
                         "cuMemcpyHtoDAsync");
}

Result<void> Stream::copy_to_host(void* to, Address from, std::size_t bytes) const {
  if (bytes == 0) return {};
  return context_->check(context_->api().copy_to_host(to, from, bytes, handle_),
                         "cuMemcpyDtoHAsync");
}

Result<void> Stream::fill(Address to, unsigned char value, std::size_t bytes) const {
  if (bytes == 0) return {};
  return context_->check(context_->api().fill_bytes(to, value, bytes, handle_), "cuMemsetD8Async");
}

Result<void> Stream::record(const Event& event) const {
  return context_->check(context_->api().event_record(event.handle(), handle_), "cuEventRecord");
}

Result<void> Stream::synchronize() const {
  TERN_TRY(context_->make_current());
  return context_->check(context_->api().stream_synchronize(handle_), "cuStreamSynchronize");
}

Graph::~Graph() {
  if (handle_ != nullptr && context_->make_current().ok())
    (void)context_->api().graph_exec_destroy(handle_);
}

Graph::Graph(Graph&& other) noexcept
    : context_(std::move(other.context_)),
      handle_(std::exchange(other.handle_, nullptr)),
      nodes_(other.nodes_) {}

Result<void> Graph::launch(const Stream& stream) const {
  return context_->check(context_->api().graph_launch(handle_, stream.handle()), "cuGraphLaunch");
}

namespace detail {

Result<void> begin_capture(const Stream& stream) {
  const Context& context = *stream.context();
  TERN_TRY(context.make_current());
  return context.check(context.api().capture_begin(stream.handle(), kCaptureThreadLocal),
                       "cuStreamBeginCapture");
}

Result<Graph> end_capture(const Stream& stream, Result<void> recorded) {
  const Context& context = *stream.context();
  GraphHandle* graph = nullptr;
  const Status ended = context.api().capture_end(stream.handle(), &graph);
  const auto drop = [&] {
    if (graph != nullptr) (void)context.api().graph_destroy(graph);
  };
  if (!recorded.ok()) {
    drop();
    return recorded.error();
  }
  TERN_TRY(context.check(ended, "cuStreamEndCapture"));
  std::size_t nodes = 0;
  Result<void> result =
      context.check(context.api().graph_nodes(graph, nullptr, &nodes), "cuGraphGetNodes");
  GraphExecHandle* exec = nullptr;
  if (result.ok())
    result = context.check(context.api().graph_instantiate(&exec, graph, 0),
                           "cuGraphInstantiateWithFlags");
  drop();
  TERN_TRY(result);
  return Graph(stream.context(), exec, nodes);
}

}  // namespace detail

}  // namespace tern::cuda

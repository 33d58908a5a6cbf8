// Streams, events and graphs of the driver as owning values.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "backend/cuda/core/context.h"

namespace tern::cuda {

// A point of a stream. Recording and asking belong to one thread at a time.
class Event {
 public:
  [[nodiscard]] static Result<Event> make(std::shared_ptr<Context> context, bool has_time);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;

  [[nodiscard]] EventHandle* handle() const { return handle_; }
  // True: everything before the last record has ended. Errors carry what went wrong on the way.
  [[nodiscard]] Result<bool> has_passed() const;
  [[nodiscard]] Result<void> wait() const;

 private:
  Event(std::shared_ptr<Context> context, EventHandle* handle)
      : context_(std::move(context)), handle_(handle) {}
  std::shared_ptr<Context> context_;
  EventHandle* handle_;
};

// Commands in order. One thread at a time.
class Stream {
 public:
  [[nodiscard]] static Result<Stream> make(std::shared_ptr<Context> context);
  ~Stream();  // waits for what is in flight
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;

  [[nodiscard]] StreamHandle* handle() const { return handle_; }
  [[nodiscard]] const std::shared_ptr<Context>& context() const { return context_; }
  [[nodiscard]] Result<void> copy_to_device(Address to, const void* from, std::size_t bytes) const;
  [[nodiscard]] Result<void> copy_to_host(void* to, Address from, std::size_t bytes) const;
  [[nodiscard]] Result<void> fill(Address to, unsigned char value, std::size_t bytes) const;
  [[nodiscard]] Result<void> record(const Event& event) const;
  [[nodiscard]] Result<void> synchronize() const;

 private:
  Stream(std::shared_ptr<Context> context, StreamHandle* handle)
      : context_(std::move(context)), handle_(handle) {}
  std::shared_ptr<Context> context_;
  StreamHandle* handle_;
};

// A captured graph, ready to be launched.
class Graph {
 public:
  Graph(std::shared_ptr<Context> context, GraphExecHandle* handle, std::size_t nodes)
      : context_(std::move(context)), handle_(handle), nodes_(nodes) {}
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&&) = delete;

  [[nodiscard]] Result<void> launch(const Stream& stream) const;
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  std::shared_ptr<Context> context_;
  GraphExecHandle* handle_;
  std::size_t nodes_;
};

// Captures what `record` appends to the stream. On an error the stream is out of capture mode.
template <class F>
[[nodiscard]] Result<Graph> capture(const Stream& stream, F&& record);

namespace detail {
[[nodiscard]] Result<void> begin_capture(const Stream& stream);
[[nodiscard]] Result<Graph> end_capture(const Stream& stream, Result<void> recorded);
}  // namespace detail

template <class F>
Result<Graph> capture(const Stream& stream, F&& record) {
  TERN_TRY(detail::begin_capture(stream));
  return detail::end_capture(stream, record());
}

}  // namespace tern::cuda

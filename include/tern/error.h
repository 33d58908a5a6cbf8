// Errors of the library: a closed set of codes, an exception, and a value-or-error.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tern {

// What kind of thing went wrong. The program's exit code and the server's status follow from it.
enum class ErrorCode {
  kUsage,            // a flag or a request is wrong in itself
  kInvalidArgument,  // a value is outside of what the model or the machine allows
  kNotFound,         // a file, key or tensor is not there
  kInvalidFile,      // a file is damaged or contradicts itself
  kUnsupported,      // valid, but Tern does not do this
  kOutOfMemory,      // needs more memory than there is
  kDiskFull,         // a file could not be written completely
  kIo,               // the operating system refused to read or write
  kContextOverflow,  // more tokens than the context holds
  kTemplate,         // a chat template raised an error or contains one
  kNumeric,          // NaN or Inf where numbers must be finite
  kDevice,           // a device is missing, lost or refused work
  kCancelled,        // the caller asked to stop
  kDeadline,         // a wait ended before the work did; the work goes on
  kInternal,         // a fault of Tern
};

// Thrown where a request cannot go on. The message is one sentence: where, what, expected, what to
// do.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] std::string message() const { return what(); }

 private:
  ErrorCode code_;
};

// A value or the error that took its place. C++20 has no std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that a function returns its value or fail(...) as it stands.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // The value; throws the error when there is none.
  T& value() & {
    throw_if_error();
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    throw_if_error();
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    throw_if_error();
    return std::move(*std::get_if<0>(&state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

  // The error; only to be called when !ok().
  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  void throw_if_error() const {
    if (const Error* e = std::get_if<1>(&state_)) throw Error(*e);
  }
  std::variant<T, Error> state_;
};

// Success without a value.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : error_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return error_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  void value() const {
    if (!ok()) throw Error(error());
  }
  [[nodiscard]] const Error& error() const { return std::get<1>(error_); }

 private:
  std::variant<std::monostate, Error> error_;
};

}  // namespace tern

// Calls into a vendor's library: errors get their place, exceptions and null pointers become
// errors.
#pragma once

#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace tern::gpu {

// Runs a function of the vendor. Its error gets the place put before it, and an exception of
// whatever kind ends here.
template <class T, class Call>
Result<T> guarded(std::string_view op, std::string_view vendor, std::string_view what,
                  Call&& call) {
  const auto failed = [&](ErrorCode code, std::string_view why) {
    return fail(code, "{}: {} failed to {}: {}", op, vendor, what, why);
  };
  try {
    Result<T> result = call();
    if (!result.ok()) return failed(result.error().code(), result.error().message());
    return result;
  } catch (const Error& error) {
    return failed(error.code(), error.message());
  } catch (const std::exception& error) {
    return failed(ErrorCode::kDevice, error.what());
  } catch (...) {
    return failed(ErrorCode::kDevice, "an unknown exception");
  }
}

// The same for a creation, where null is a failure too.
template <class Object, class Call>
Result<std::unique_ptr<Object>> made(std::string_view op, std::string_view vendor,
                                     std::string_view what, Call&& call) {
  TERN_ASSIGN(std::unique_ptr<Object> object,
              guarded<std::unique_ptr<Object>>(op, vendor, what, std::forward<Call>(call)));
  if (!object) {
    return fail(ErrorCode::kDevice, "{}: {} failed to {}: it returned nothing", op, vendor, what);
  }
  return object;
}

}  // namespace tern::gpu

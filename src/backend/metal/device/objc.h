// One owned Objective-C object, under manual and under automatic reference counting alike, and
// strings across the language border.
#pragma once

#import <Foundation/Foundation.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace tern::metal {

template <class T>
class Owned {
 public:
  Owned() = default;
  // Takes over a reference that the caller owns (new..., alloc, copy).
  explicit Owned(T object) : object_(object) {}
  // Adds a reference to an object that somebody else owns, or an autorelease pool.
  [[nodiscard]] static Owned shared(T object) {
#if !__has_feature(objc_arc)
    [object retain];
#endif
    return Owned(object);
  }
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
#if !__has_feature(objc_arc)
    [object_ release];
#endif
  }
  void reset() { *this = Owned(); }
  [[nodiscard]] T get() const { return object_; }
  explicit operator bool() const { return object_ != nil; }

 private:
  T object_ = nil;
};

// The result belongs to the current autorelease pool.
[[nodiscard]] inline NSString* ns_string(std::string_view text) {
  return [NSString stringWithUTF8String:std::string(text).c_str()];
}

[[nodiscard]] inline std::string text_of(NSString* text) {
  const char* utf8 = text == nil ? nullptr : [text UTF8String];
  return utf8 == nullptr ? std::string() : std::string(utf8);
}

// "MTLLibraryErrorDomain 3: program_source:4: error: ..."
[[nodiscard]] inline std::string text_of(NSError* error) {
  if (error == nil) return "no reason was given";
  return fmt::format("{} {}: {}", text_of([error domain]), static_cast<long>([error code]),
                     text_of([error localizedDescription]));
}

}  // namespace tern::metal

// Quantities with their unit in the type: seconds, bytes, floating-point operations and their
// rates. What cannot be mixed does not compile, so nanoseconds and seconds, or GFLOP/s and FLOP/s,
// never meet in one sum.
#pragma once

#include <compare>
#include <string>

namespace tern::backend {

// Always in the base unit: seconds, bytes, operations.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Quantity a, double b) { return Quantity(a.value_ * b); }
  friend constexpr Quantity operator*(double a, Quantity b) { return Quantity(a * b.value_); }
  friend constexpr Quantity operator/(Quantity a, double b) { return Quantity(a.value_ / b); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  double value_ = 0;
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using Flop = Quantity<struct FlopTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopPerSecond = Quantity<struct FlopPerSecondTag>;

constexpr Seconds operator/(Bytes bytes, BytesPerSecond rate) {
  return Seconds(bytes.value() / rate.value());
}
constexpr Seconds operator/(Flop flop, FlopPerSecond rate) {
  return Seconds(flop.value() / rate.value());
}
constexpr BytesPerSecond operator/(Bytes bytes, Seconds time) {
  return BytesPerSecond(bytes.value() / time.value());
}
constexpr FlopPerSecond operator/(Flop flop, Seconds time) {
  return FlopPerSecond(flop.value() / time.value());
}

constexpr Seconds microseconds(double value) { return Seconds(value * 1e-6); }
constexpr BytesPerSecond gigabytes_per_second(double value) { return BytesPerSecond(value * 1e9); }
constexpr FlopPerSecond gigaflop_per_second(double value) { return FlopPerSecond(value * 1e9); }

// "41.2 us", "3.10 ms", "1.25 s": for people.
[[nodiscard]] std::string to_string(Seconds time);

}  // namespace tern::backend

// Integer functions of the shim on every integer type against wide integers.
#include <limits>
#include <random>
#include <type_traits>

#include "runner.h"

namespace swmetal_test {
namespace {

using Wide = __int128;
constexpr unsigned kN = 96;

Wide mask(int bits) { return (Wide{1} << bits) - 1; }
Wide low(Wide x, int bits) { return x & mask(bits); }
template <class T>
Wide clip(Wide x) {
  const Wide a = std::numeric_limits<T>::min(), b = std::numeric_limits<T>::max();
  return x < a ? a : x > b ? b : x;
}
Wide high_product(Wide x, Wide y, int bits) {
  using Unsigned = unsigned __int128;  // wraps where the product of two 64-bit values ends above
  return static_cast<Wide>(static_cast<Unsigned>(x) * static_cast<Unsigned>(y)) >> bits;
}
Wide floor_half(Wide x) { return x >> 1; }
Wide rotated(Wide x, Wide y, int bits) {
  const int n = static_cast<int>(low(y, bits) % bits);
  return low(x, bits) << n | low(x, bits) >> (bits - n);
}
Wide ones(Wide x, int bits) {
  return __builtin_popcountll(static_cast<unsigned long long>(low(x, bits)));
}
Wide leading(Wide x, int bits) {
  int n = 0;
  while (n < bits && !(x >> (bits - 1 - n) & 1)) n++;
  return n;
}
Wide trailing(Wide x, int bits) {
  int n = 0;
  while (n < bits && !(x >> n & 1)) n++;
  return n;
}
Wide reversed(Wide x, int bits) {
  Wide r = 0;
  for (int i = 0; i < bits; i++) r |= (x >> i & 1) << (bits - 1 - i);
  return r;
}
Wide extracted(Wide x, int bits, bool is_signed) {
  const Wide cut = low(x, bits) >> 2 & 31;
  return is_signed && (cut & 16) ? cut - 32 : cut;
}
Wide inserted(Wide x, Wide y) { return (x & ~Wide{30}) | (low(y, 4) << 1); }

template <class T>
struct Row {
  const char* name;
  Wide (*reference)(Wide x, Wide y, int bits);
};

class Integers : public Runner {
 protected:
  template <class T>
  void check(const std::string& kernel) {
#define SWM_ROW(name, reference)                                  \
  {#name, [](Wide x, Wide y, [[maybe_unused]] int bits) -> Wide { \
     (void)x, (void)y;                                            \
     return reference;                                            \
   }},
    const Row<T> rows[] = {
#include "integer.inc"
    };
#undef SWM_ROW
    std::mt19937_64 random(3);
    std::vector<T> in(2 * kN), out(std::size(rows) * kN);
    for (T& v : in) v = static_cast<T>(random());
    const T edges[] = {0, 1, static_cast<T>(-1), std::numeric_limits<T>::max(),
                       static_cast<T>(std::numeric_limits<T>::min() + 1)};
    for (size_t a = 0; a < 5; a++)
      for (size_t b = 0; b < 5; b++) in[5 * a + b] = edges[a], in[kN + 5 * a + b] = edges[b];
    std::vector<unsigned> differences(std::size(rows)), n = {kN};
    bind(0, in), bind(1, out), bind(2, differences), bind(3, n);
    ASSERT_EQ(run(kernel, {kN, 1, 1}, {kN, 1, 1}), "");
    const int bits = 8 * sizeof(T);
    for (size_t r = 0; r < std::size(rows); r++) {
      EXPECT_EQ(differences[r], 0u) << kernel << " " << rows[r].name << ": vectors differ";
      for (unsigned i = 0; i < kN; i++)
        EXPECT_EQ(+out[r * kN + i], +static_cast<T>(rows[r].reference(in[i], in[kN + i], bits)))
            << kernel << " " << rows[r].name << "(" << +in[i] << ", " << +in[kN + i] << ")";
    }
  }
};

TEST_F(Integers, OfAllTypes) {
  check<signed char>("integer_char");
  check<unsigned char>("integer_uchar");
  check<short>("integer_short");
  check<unsigned short>("integer_ushort");
  check<int>("integer_int");
  check<unsigned>("integer_uint");
  check<long>("integer_long");
  check<unsigned long>("integer_ulong");
}

TEST_F(Integers, TheRest) {
  std::vector<int> o(16, -1);
  bind(0, o);
  ASSERT_EQ(run("integer_rest", {1, 1, 1}, {1, 1, 1}), "");
  const std::vector<int> want = {-3000, 10001, 11,          2147483647, 17,  0x12,   -1, 0,
                                 80,    5,     32767 - 128, 1,          127, 0x3c00, 2,  4};
  EXPECT_EQ(o, want);
}

}  // namespace
}  // namespace swmetal_test

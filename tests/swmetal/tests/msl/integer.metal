// Every integer function of the shim on every integer type, scalars against vectors here, scalars
// against wide integers in integer_test.cpp.
#include <metal_stdlib>
using namespace metal;

// As in metal, so that a row of integer.inc reads the same for functions of one and two arguments.
namespace one {
using namespace metal;
template <typename T> T popcount_of(T x, T y) { return popcount(x); }
template <typename T> T clz_of(T x, T y) { return clz(x); }
template <typename T> T ctz_of(T x, T y) { return ctz(x); }
template <typename T> T reverse_bits_of(T x, T y) { return reverse_bits(x); }
template <typename T> T abs_of(T x, T y) { return abs(x); }
template <typename T> T extract_of(T x, T y) { return extract_bits(x, 2u, 5u); }
template <typename T> T insert_of(T x, T y) { return insert_bits(x, y, 1u, 4u); }
}  // namespace one

template <typename T>
kernel void integer2(device const T* in [[buffer(0)]], device T* out [[buffer(1)]],
                     device atomic_uint* differences [[buffer(2)]], constant uint& n [[buffer(3)]],
                     uint i [[thread_position_in_grid]]) {
  uint row = 0;
  const T x = in[i], y = in[n + i];
#define SWM_ROW(name, reference)                                                           \
  {                                                                                        \
    const T r = one::name(x, y);                                                           \
    const vec<T, 4> v = one::name(vec<T, 4>(x, y, x, y), vec<T, 4>(y, x, y, x));           \
    const vec<T, 3> w = one::name(vec<T, 3>(x, x, y), vec<T, 3>(y, y, x));                 \
    if (v.x != r || v.z != r || w.y != r || v.y != one::name(y, x) || w.z != v.w)          \
      atomic_fetch_add_explicit(&differences[row], 1u, memory_order_relaxed);              \
    out[row * n + i] = r;                                                                  \
    row++;                                                                                 \
  }
#include "integer.inc"
#undef SWM_ROW
}
#define INSTANCE(T) \
  template [[host_name("integer_" #T)]] kernel void integer2<T>( \
      device const T*, device T*, device atomic_uint*, constant uint&, uint);
INSTANCE(char)
INSTANCE(uchar)
INSTANCE(short)
INSTANCE(ushort)
INSTANCE(int)
INSTANCE(uint)
INSTANCE(long)
INSTANCE(ulong)

kernel void integer_rest(device int* o [[buffer(0)]]) {
  o[0] = mul24(1000, -3);
  o[1] = mad24(100, 100, 1);
  o[2] = madhi(1 << 20, 1 << 14, 7);
  o[3] = madsat(1 << 20, 1 << 20, 0);
  o[4] = int(madsat(uint(3), uint(4), uint(5)));
  o[5] = int(extract_bits(0xabcd1234u, 8u, 8u));
  o[6] = extract_bits(0xff00, 8u, 8u);
  o[7] = extract_bits(123, 3u, 0u);
  o[8] = insert_bits(0, 5, 4u, 3u);
  o[9] = clamp(7, 0, 5);
  o[10] = int(numeric_limits<short>::max()) + int(numeric_limits<char>::min());
  o[11] = numeric_limits<int>::lowest() == INT_MIN && numeric_limits<uint>::max() == UINT_MAX;
  o[12] = int(as_type<uint>(1.0f) >> 23);
  o[13] = int(as_type<ushort>(half(1.0f)));
  o[14] = as_type<int2>(ulong(0x0000000200000001ul)).y;
  o[15] = int(as_type<uchar4>(0x04030201u).w);
}

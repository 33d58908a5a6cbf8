// The vectors of MSL as a class: vec<T, N> for N = 2, 3, 4 with swizzles, conversions and
// element-wise operators. Layout as in Metal: a vector of three takes the room of four.
#pragma once

#include "base.h"

namespace metal {

template <class T, int N>
struct vec;

template <class T, int N>
struct shape<vec<T, N>> {
  typedef T element;
  static constexpr int length = N;
};

namespace detail {

template <class T, int N>
struct truth<vec<T, N>> {
  typedef vec<bool, N> type;
};

constexpr bool differ(char a, char b, char c = 0, char d = 1) {
  return a != b && a != c && a != d && b != c && b != d && c != d;
}

// A swizzle is a property: reading calls get, assigning calls put, and its type is a real vector,
// so templates and auto see what they would see under Metal.
#define SWM_SWIZZLE2(a, b)                                                       \
  vec<T, 2> swm_get_##a##b() const { return vec<T, 2>(this->a, this->b); }       \
  void swm_put_##a##b(vec<T, 2> v) {                                             \
    static_assert(differ(#a[0], #b[0]), "assignment to a swizzle that repeats"); \
    this->a = v.d[0];                                                            \
    this->b = v.d[1];                                                            \
  }                                                                              \
  __declspec(property(get = swm_get_##a##b, put = swm_put_##a##b)) vec<T, 2> a##b;
#define SWM_SWIZZLE3(a, b, c)                                                           \
  vec<T, 3> swm_get_##a##b##c() const { return vec<T, 3>(this->a, this->b, this->c); }  \
  void swm_put_##a##b##c(vec<T, 3> v) {                                                 \
    static_assert(differ(#a[0], #b[0], #c[0]), "assignment to a swizzle that repeats"); \
    this->a = v.d[0];                                                                   \
    this->b = v.d[1];                                                                   \
    this->c = v.d[2];                                                                   \
  }                                                                                     \
  __declspec(property(get = swm_get_##a##b##c, put = swm_put_##a##b##c)) vec<T, 3> a##b##c;
#define SWM_SWIZZLE4(a, b, c, e)                                                                   \
  vec<T, 4> swm_get_##a##b##c##e() const { return vec<T, 4>(this->a, this->b, this->c, this->e); } \
  void swm_put_##a##b##c##e(vec<T, 4> v) {                                                         \
    static_assert(differ(#a[0], #b[0], #c[0], #e[0]), "assignment to a swizzle that repeats");     \
    this->a = v.d[0];                                                                              \
    this->b = v.d[1];                                                                              \
    this->c = v.d[2];                                                                              \
    this->e = v.d[3];                                                                              \
  }                                                                                                \
  __declspec(property(get = swm_get_##a##b##c##e, put = swm_put_##a##b##c##e)) vec<T, 4> a##b##c##e;

// The cross product of the letters, one level a macro: a macro does not expand inside itself.
#define SWM_EACH2_1(M, ...) M(__VA_ARGS__, x) M(__VA_ARGS__, y)
#define SWM_EACH2_2(M, ...) SWM_EACH2_1(M, __VA_ARGS__, x) SWM_EACH2_1(M, __VA_ARGS__, y)
#define SWM_EACH2_3(M, ...) SWM_EACH2_2(M, __VA_ARGS__, x) SWM_EACH2_2(M, __VA_ARGS__, y)
#define SWM_SWIZZLES2(n, M) SWM_EACH2_##n(M, x) SWM_EACH2_##n(M, y)
#define SWM_EACH3_1(M, ...) SWM_EACH2_1(M, __VA_ARGS__) M(__VA_ARGS__, z)
#define SWM_EACH3_2(M, ...) \
  SWM_EACH3_1(M, __VA_ARGS__, x) SWM_EACH3_1(M, __VA_ARGS__, y) SWM_EACH3_1(M, __VA_ARGS__, z)
#define SWM_EACH3_3(M, ...) \
  SWM_EACH3_2(M, __VA_ARGS__, x) SWM_EACH3_2(M, __VA_ARGS__, y) SWM_EACH3_2(M, __VA_ARGS__, z)
#define SWM_SWIZZLES3(n, M) SWM_EACH3_##n(M, x) SWM_EACH3_##n(M, y) SWM_EACH3_##n(M, z)
#define SWM_EACH4_1(M, ...) SWM_EACH3_1(M, __VA_ARGS__) M(__VA_ARGS__, w)
#define SWM_EACH4_2(M, ...)      \
  SWM_EACH4_1(M, __VA_ARGS__, x) \
  SWM_EACH4_1(M, __VA_ARGS__, y) SWM_EACH4_1(M, __VA_ARGS__, z) SWM_EACH4_1(M, __VA_ARGS__, w)
#define SWM_EACH4_3(M, ...)      \
  SWM_EACH4_2(M, __VA_ARGS__, x) \
  SWM_EACH4_2(M, __VA_ARGS__, y) SWM_EACH4_2(M, __VA_ARGS__, z) SWM_EACH4_2(M, __VA_ARGS__, w)
#define SWM_SWIZZLES4(n, M) \
  SWM_EACH4_##n(M, x) SWM_EACH4_##n(M, y) SWM_EACH4_##n(M, z) SWM_EACH4_##n(M, w)
#define SWM_ALL_SWIZZLES(n) \
  SWM_SWIZZLES##n(1, SWM_SWIZZLE2) SWM_SWIZZLES##n(2, SWM_SWIZZLE3) SWM_SWIZZLES##n(3, SWM_SWIZZLE4)

template <class T, int N>
struct lanes;

template <class T>
struct alignas(2 * sizeof(T)) lanes<T, 2> {
  union {
    T d[2];
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
  };
  SWM_ALL_SWIZZLES(2)
};

template <class T>
struct alignas(4 * sizeof(T)) lanes<T, 3> {
  union {
    T d[3];
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
  };
  SWM_ALL_SWIZZLES(3)
};

template <class T>
struct alignas(4 * sizeof(T)) lanes<T, 4> {
  union {
    T d[4];
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
  };
  SWM_ALL_SWIZZLES(4)
};

template <class... Parts>
struct total_length {
  static constexpr int value = 0;
};
template <class A, class... Parts>
struct total_length<A, Parts...> {
  static constexpr int value = length_v<A> + total_length<Parts...>::value;
};

}  // namespace detail

template <class T, int N>
struct vec : detail::lanes<T, N> {
  using detail::lanes<T, N>::d;

  vec() = default;
  // A scalar fills every lane, implicitly: v * 2, max(v, 0.0f).
  template <class S, enable_if_t<is_scalar_v<S>, int> = 0>
  vec(S s) {
    for (int i = 0; i < N; i++) d[i] = T(s);
  }
  // Between element types only on request, as in Metal.
  template <class U, enable_if_t<!is_same_v<U, T>, int> = 0>
  explicit vec(vec<U, N> v) {
    for (int i = 0; i < N; i++) d[i] = T(v.d[i]);
  }
  template <class A, class B, class... Parts,
            enable_if_t<detail::total_length<A, B, Parts...>::value == N, int> = 0>
  vec(A a, B b, Parts... parts) {
    int at = 0;
    put(at, a);
    put(at, b);
    (void)(int[]){0, (put(at, parts), 0)...};
  }

  T& operator[](unsigned long i) { return d[i]; }
  const T& operator[](unsigned long i) const { return d[i]; }

#define SWM_BINARY(op)                                        \
  friend vec operator op(vec a, vec b) {                      \
    for (int i = 0; i < N; i++) a.d[i] = T(a.d[i] op b.d[i]); \
    return a;                                                 \
  }                                                           \
  vec& operator op##=(vec b) { return *this = *this op b; }
#define SWM_COMPARE(op)                                    \
  friend vec<bool, N> operator op(vec a, vec b) {          \
    vec<bool, N> r;                                        \
    for (int i = 0; i < N; i++) r.d[i] = a.d[i] op b.d[i]; \
    return r;                                              \
  }
  SWM_BINARY(+)
  SWM_BINARY(-)
  SWM_BINARY(*)
  SWM_BINARY(/)
  SWM_BINARY(%)
  SWM_BINARY(&)
  SWM_BINARY(|)
  SWM_BINARY(^)
  SWM_BINARY(<<)
  SWM_BINARY(>>)
  SWM_COMPARE(<)
  SWM_COMPARE(>)
  SWM_COMPARE(<=)
  SWM_COMPARE(>=)
  SWM_COMPARE(==)
  SWM_COMPARE(!=)
  SWM_COMPARE(&&)
  SWM_COMPARE(||)
#undef SWM_BINARY
#undef SWM_COMPARE

  vec operator+() const { return *this; }
  vec operator-() const {
    vec r;
    for (int i = 0; i < N; i++) r.d[i] = T(-d[i]);
    return r;
  }
  vec operator~() const {
    vec r;
    for (int i = 0; i < N; i++) r.d[i] = T(~d[i]);
    return r;
  }
  vec<bool, N> operator!() const {
    vec<bool, N> r;
    for (int i = 0; i < N; i++) r.d[i] = !d[i];
    return r;
  }
  vec& operator++() { return *this += vec(1); }
  vec& operator--() { return *this -= vec(1); }
  vec operator++(int) {
    vec old = *this;
    ++*this;
    return old;
  }
  vec operator--(int) {
    vec old = *this;
    --*this;
    return old;
  }

 private:
  template <class S>
  enable_if_t<is_scalar_v<S>> put(int& at, S s) {
    d[at++] = T(s);
  }
  template <class U, int M>
  void put(int& at, vec<U, M> v) {
    for (int i = 0; i < M; i++) d[at++] = T(v.d[i]);
  }
};

}  // namespace metal

#define SWM_VECTORS(T)           \
  typedef metal::vec<T, 2> T##2; \
  typedef metal::vec<T, 3> T##3; \
  typedef metal::vec<T, 4> T##4;
SWM_VECTORS(float)
SWM_VECTORS(half)
SWM_VECTORS(bfloat)
SWM_VECTORS(int)
SWM_VECTORS(uint)
SWM_VECTORS(short)
SWM_VECTORS(ushort)
SWM_VECTORS(char)
SWM_VECTORS(uchar)
SWM_VECTORS(long)
SWM_VECTORS(ulong)
SWM_VECTORS(bool)
#undef SWM_VECTORS

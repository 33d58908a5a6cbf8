// Vectors, conversions, swizzles, packed types, matrices, literals: one result a cell.
#include <metal_stdlib>
using namespace metal;

template <typename V, typename S>
static inline V construct(S x) { return V(x); }
template <typename V>
static inline V gather(float a, float b, float c, float d) { return V(a, b, c, d); }
template <typename T>
static inline T cast(float x) { return (T)x; }

struct Mixed {
  packed_float3 position;
  uchar4 colour;
  float3 wide;
};

constant float3 kTable[2] = {float3(1, 2, 3), float3(4, 5, 6)};

kernel void vectors(device float* o [[buffer(0)]]) {
  int4 v = int4(1, 2, 3, 4);
  float4 a = (float4)v;
  o[0] = a.x + a.w;
  o[1] = construct<float4>(v).z;
  o[2] = gather<half4>(1, 2, 3, 4).w;
  o[3] = float(cast<uint>(7.9f));
  o[4] = float(half(1.0f) + half(0.0004f) + half(0.0004f));
  o[5] = 1.0f / 3 * 0.1;
  half4 q = half4(a);
  q.zw = q.xy;
  o[6] = float(q.w);
  uchar u = 200;
  o[7] = float(uchar(u + 100));
  o[8] = float4(float2(1, 2), 3, 4).w + float4(1, float3(2, 3, 4)).y;
  float4 s = a;
  s.xy = s.yx;
  s.zw += 1.0f;
  s.x *= 3;
  o[9] = s.x * 1000 + s.y * 100 + s.z * 10 + s.w;
  o[10] = a.wzyx.x + a.xxx.z + a.g;
  bool4 larger = a > 2.0f;
  o[11] = float(larger.x) + 2 * float(larger.y) + 4 * float(larger.z) + 8 * float(larger.w);
  o[12] = float((v == int4(1, 0, 3, 0)).z) + float(!larger.x);
  v <<= 2;
  v |= 1;
  o[13] = float(v.y % 4 + (v.z >> 1) + (~v).x);
  o[14] = (2.0f * a - 1.0f / a + -a).y;
  a[2] = 9.0f;
  o[15] = a.z;
  uchar4 w = uchar4(250, 1, 2, 3);
  w += 10;
  o[16] = float(w.x);
  short3 c = short3(1, 2, 3);
  c++;
  --c;
  o[17] = float((c++).x + c.x + (++c).y);
  o[18] = float(sizeof(float3)) + float(sizeof(packed_float3)) + float(sizeof(Mixed)) +
          float(alignof(half4));
  Mixed m;
  m.position = float3(1, 2, 3);
  m.wide = m.position;
  m.position[1] = 8;
  o[19] = m.wide.y + float3(m.position).y;
  o[20] = kTable[1].z;
  float4x4 id = float4x4(2.0f);
  o[21] = (id * float4(1, 2, 3, 4)).w + (float4(1, 2, 3, 4) * id).x;
  float2x3 r = float2x3(float3(1, 2, 3), float3(4, 5, 6));
  o[22] = (r * float2(1, 1)).z + transpose(r)[2][1] + (r + r)[1].x + (r * 2.0f)[0].y;
  o[23] = (float2x2(float2(1, 2), float2(3, 4)) * float2x2(float2(5, 6), float2(7, 8)))[1][0];
  o[24] = 1.5h + float(2.0h);
  o[25] = float4(half4(1.0h, 2.0h, 3.0h, 4.0h)).z;
  o[26] = float(int3(float3(1.9f, -1.9f, 0)).y);
  o[27] = float4{1, 2, 3, 4}.w;
  auto pair = a.xy;
  pair.x = 70;
  o[28] = a.x + pair.x;
  o[29] = max(a.xy, a.yx).x + dot(a.xyz, float3(1));
  float4 copies[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  o[30] = copies[1].w;
  o[31] = (true ? a : -a).x;
  vec<float, 2> named = {3, 4};
  o[32] = named.y + float(is_same_v<float2, vec<float, 2>>);
  long2 big = long2(1l << 40, 1);
  o[33] = float(big.x >> 38);
  o[34] = M_PI_F > 3.14f && isinf(INFINITY) && isnan(NAN) && MAXFLOAT > 1e38f ? 1 : 0;
}

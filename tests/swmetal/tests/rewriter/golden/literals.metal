// Unsuffixed floats get an f; unroll pragmas go; lines stay.
kernel void literals(device float* o [[buffer(0)]]) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    o[i] = 1.0 + .5 + 2. + 1e3 + 1.5e-3 + 1.0f + 1.0h + 0x1F + 7 + 1'000.0;
}

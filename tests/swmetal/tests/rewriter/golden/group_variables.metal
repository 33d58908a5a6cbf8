// Variables in threadgroup memory become references; pointers into it stay.
kernel void variables(threadgroup float* argument [[threadgroup(0)]]) {
  threadgroup float one;
  threadgroup float table[2][16 * 4], other[8];
  threadgroup atomic_uint counter;
  threadgroup vec<float, 4> wide[4];
  threadgroup float
      over_lines[4];
  threadgroup float* pointer = argument;
  threadgroup const float& reference = table[0][1];
  if (true) {
    threadgroup uchar inner[3];
  }
}

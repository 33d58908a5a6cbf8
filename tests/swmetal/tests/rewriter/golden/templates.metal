// Instances of kernel templates get a thunk each; the template alone gets none.
template <typename T, int N>
kernel void scale(device T* o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  o[i] *= T(N);
}
template [[host_name("scale_float_2")]] kernel void scale<float, 2>(device float*, uint);
template [[host_name("scale_" "half")]] [[kernel]] void scale<half, (1 < 2) ? 3 : 4>(device half*, uint);
typedef decltype(scale<int, 5>) scale_int;
template [[host_name("scale_int")]] kernel scale_int scale<int, 5>;

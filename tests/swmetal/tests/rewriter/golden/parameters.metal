// Every way in which a kernel gets its parameters.
kernel void parameters(device const float* a [[buffer(3)]], constant uint& n [[buffer(0)]],
                       device float* next_free, threadgroup float* s [[threadgroup(1)]],
                       threadgroup float* next_memory, uint2 p [[thread_position_in_grid]],
                       ushort lane [[thread_index_in_simdgroup]]) {
}
[[kernel]] void attribute_form(device float* a [[buffer(0)]]) {
}
[[kernel, max_total_threads_per_threadgroup(128)]] void with_limit(device float* a [[buffer(0)]]) {
}
[[max_total_threads_per_threadgroup(256)]] kernel void limit_in_front(
    device float* a [[buffer(0)]]) {
}
kernel void only_declared(device float* a [[buffer(0)]]);

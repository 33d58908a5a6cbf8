# NVIDIA H200: bandwidth, launch and products were measured, the f32 rate is the maker's.
name = h200
kind = cuda
architecture = sm_90
maker_name = NVIDIA H200
memory_gib = 139
cores = 132
launch_us = 0.546
read_gbps = 4560
f32_tflops = 67
f16_tflops = 788
bf16_tflops = 788
integer_tops = 1224

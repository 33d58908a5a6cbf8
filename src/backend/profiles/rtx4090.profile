# GeForce RTX 4090: the maker's figures; nothing was measured.
name = rtx4090
kind = cuda
architecture = sm_89
maker_name = NVIDIA GeForce RTX 4090
memory_gib = 24
cores = 128
launch_us = 1
read_gbps = 1008
f32_tflops = 82
f16_tflops = 165
bf16_tflops = 165
integer_tops = 660

# Apple M4 Pro, 20 cores: the maker's bandwidth, rates by clock and cores; nothing was measured.
name = m4-pro
kind = metal
architecture = apple9
maker_name = Apple M4 Pro
memory_gib = 24
cores = 20
launch_us = 3
read_gbps = 273
f32_tflops = 8
f16_tflops = 8
bf16_tflops = 8
integer_tops = 8

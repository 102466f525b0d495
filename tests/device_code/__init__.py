"""Runs the PTX of CUDA kernels on a CPU: see README.md in this folder."""

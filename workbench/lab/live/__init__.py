"""A page for browsers that computes by itself: the kernels are in it, compiled to WebAssembly (`workbench/web_library.py`)."""

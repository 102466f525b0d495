"""A page that computes in the browser, with the kernels in it, compiled to WebAssembly (`workbench/web_library.py`)."""

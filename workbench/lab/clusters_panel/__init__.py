"""The clusters panel: its state, stages, drawing, and the code that reproduces its result."""

"""The clusters panel of a series: its state, stages, drawing, and the code that reproduces its result."""

"""Charts and tables as text and SVG, which notebooks, reports and the shell show without a library."""

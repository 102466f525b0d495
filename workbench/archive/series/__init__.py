"""Series in time: a folder with an archive for each step, which may be predicted from those before it."""

"""Archives on other machines: by HTTP with the standard library, in object stores through fsspec.

A region of an archive needs its root and a few chunks; so a reader asks for ranges of bytes and never for the whole file.
Nothing that arrives is trusted more than a file from elsewhere: chunks and documents have checksums.
"""

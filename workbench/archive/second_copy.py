"""The second copy of the root, deflated with a preset dictionary: most of a root is the same in every archive.

The dictionary belongs to the format: another one would need another version of it. `docs/archive-format.md` repeats it.
"""

from __future__ import annotations

import zlib

from workbench.archive.document import MOST_BYTES
from workbench.errors import WorkbenchError

DICTIONARY = (
    b'"mask""chunks_stored_exactly":{"remarks":{"invalid":"corrected":"keep":[{"notes":["pointwise-relative","limit":'
    b'{"kind":"relative","value":"units":"standard_name":"long_name":"missing_value":"comment":"uint8int16int32int64float64'
    b'{"zarr_format":3,"node_type":"group","attributes":{"format":3,"kind":"particles","order":"free","box":["curve":'
    b'{"origin":["velocities""ids""masses""permutation""extents""particle","axis""chunk","end","axis""lossbench:role":"model"'
    b'"id":"columns","codec":{"id":"sz3""zfp""sperr""fpzip""bitround""numcodecs""draco""lattice","order":"coder":"context"'
    b'"kind":"field","spacing":["name":"certificate":{"promises":[{"array":"positions","array":"values","bound":'
    b'{"kind":"absolute","eb":0.0},"figures":{"largest_error":0.00}}],"choice":"'
    b'chosen by trial on 4,096 values in the middle: interpolation , prequantised , pcodec  bits per value"},'
    b'"machine":"x86_64","metadata":{"units":"lossbench:crc32":"},"consolidated_metadata":{"kind":"inline",'
    b'"must_understand":false,"metadata":{"positions":{"values":{"zarr_format":3,"node_type":"array","shape":[],"data_type":'
    b'"float32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[]}},"chunk_key_encoding":{"name":"default"},'
    b'"fill_value":0.0,"codecs":[{"name":"lossbench","configuration":{"codec":{"id":"interpolation","frozen":[],"block":32768,'
    b'"model":null}{"id":"prequantised","level":8},"versions":{"lossbench":"0.1.0","numpy":"2.4.6","pcodec":"1.1.0"}}}],'
    b'"attributes":{"lossbench:chunks":""},"dimension_names":["axis_0","axis_1","axis_2"]}}}}'
)


def deflated(data: bytes) -> bytes:
    """The bytes of the copy.

    >>> inflated(deflated(b'{"zarr_format":3}'), "values/root.json.z")
    b'{"zarr_format":3}'
    """
    deflater = zlib.compressobj(9, zdict=DICTIONARY)
    return deflater.compress(data) + deflater.flush()


def inflated(data: bytes, key: str) -> bytes:
    """The document in the bytes of the copy under this key, of bounded size."""
    inflater = zlib.decompressobj(zdict=DICTIONARY)
    try:
        document = inflater.decompress(data, MOST_BYTES + 1)
    except zlib.error as error:
        raise WorkbenchError(f"{key} cannot be inflated ({error}): copy or download it again") from None
    if not inflater.eof or inflater.unused_data:
        raise WorkbenchError(f"{key} must be one deflated document of at most {MOST_BYTES:,} bytes: it is damaged")
    return document

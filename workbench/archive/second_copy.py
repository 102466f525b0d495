"""The second copy of the root, deflated with a preset dictionary: most of a root is the same in every archive.

The dictionaries belong to the format. A stream of zlib begins with the checksum of its dictionary, so that copies that were
written with the first one are read, too. `docs/archive-format.md` repeats both.
"""

from __future__ import annotations

import zlib

from workbench.archive.document import MOST_BYTES
from workbench.errors import WorkbenchError

FIRST_DICTIONARY = (
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
DICTIONARY = (
    b'[{"kind":"clusters","linking_length":[0.2],"unit":"spacing","min_members":1,"lengths":["predicate":'
    b'"two particles are friends when d*d <= b*b: float64, nearest periodic image, squares added axis by axis,'
    b' no fused multiply-add","precision":"float32","margin":"partition":["groups":["largest":["groups_opened":'
    b'"pairs_set_right":"edited":"exact":0,"bytes":"attempts":1,"descent_steps":0,"violations":0,"close_calls":0,"holds":'
    b'"the mass function, multiplicities and memberships of these groups are those of the original,'
    b' and no centre of mass moves by more than the bound along any axis","not_implied":"most bound or densest particles,'
    b' spherical overdensities, profiles, velocity dispersions","encoded_within":'
    b'"all bits take less room than pcodec with corrections":"hours since 1970-01-01","calendar":'
    b'"proleptic_gregorian""model":{"quality":"the mean Kullback-Leibler divergence in nats","inputs":"","loss":0.0"alone":'
    b'0.0"budget":0.01,"pruned":0.0,"assessments":2,"tied":{},"source":"a mapping","source_nbytes":"notes":'
    b'["the bound of values, 0., is larger than their standard deviation,'
    b' 0.: most of their variation may be lost"]"coordinates":["groups":{}"standard_name":"long_name":"missing_value":'
    b'"comment":""order":"keep","series":{"series":"","number":1,"time":1.0,"key":0,"before":[""],"ids":null,"appeared":0,'
    b'"vanished":0,"counted":false},"remarks":{"predicted in time":"predicted from earlier steps":1}{"zarr_format":3,'
    b'"node_type":"group","attributes":{"lossbench:collection":{"format":3,"machine":"x86_64","members":{"T":{"arrays":'
    b'{"values":"T"},"kind":"variable","name":"T","dtype":"","shape":[],"certificate":{"promises":[{"array":"values",'
    b'"bound":{"kind":"exact","eb":0.0},"figures":{}}]},"metadata":{}},"a":{"arrays":{"values":""limit":{"kind":"absolute",'
    b'"value":0.0},"figures":{}}"codec":{"id":"lattice","order":"free","coder":"auto","block":1024,"lower":["upper":["box":'
    b'["codec":{"id":"motion","codec":{"id":"columns","codec":{"id":"pcodec","level":8}},"mask""chunks_stored_exactly":'
    b'{"remarks":{"invalid":"corrected":"keep":[{"notes":["pointwise-relative","limit":{"kind":"relative","value":"units":'
    b'"standard_name":"long_name":"missing_value":"comment":"uint8int16int32int64float64{"zarr_format":3,"node_type":'
    b'"group","attributes":{"format":3,"kind":"particles","order":"free","box":["curve":{"origin":'
    b'["velocities""ids""masses""permutation""extents""particle","axis""chunk","end","axis""lossbench:role":"model""id":'
    b'"columns","codec":{"id":"sz3""zfp""sperr""fpzip""bitround""numcodecs""draco""lattice","order":"coder":"context""kind":'
    b'"field","spacing":["name":"certificate":{"promises":[{"array":"positions","array":"values","bound":{"kind":"absolute",'
    b'"eb":0.0},"figures":{"largest_error":0.00}}],"choice":"chosen by trial on 4,096 values in the middle: interpolation ,'
    b' prequantised , pcodec  bits per value"},"machine":"x86_64","metadata":{"units":"lossbench:crc32":"},'
    b'"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{"positions":{"values":{"zarr_format":3,'
    b'"node_type":"array","shape":[],"data_type":"float32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":'
    b'[]}},"chunk_key_encoding":{"name":"default"},"fill_value":0.0,"codecs":[{"name":"lossbench","configuration":{"codec":'
    b'{"id":"interpolation","frozen":[],"block":32768,"finer":0}"earlier":1{"id":"prequantised","level":8},"versions":'
    b'{"lossbench":"0.1.0","numpy":"2.4.6","pcodec":"1.1.0"},"stream":1}}],"attributes":{"lossbench:chunks":""},'
    b'"dimension_names":["axis_0","axis_1","axis_2"]}}}}'
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
    first = data[2:6] == zlib.adler32(FIRST_DICTIONARY).to_bytes(4, "big")
    inflater = zlib.decompressobj(zdict=FIRST_DICTIONARY if first else DICTIONARY)
    try:
        document = inflater.decompress(data, MOST_BYTES + 1)
    except zlib.error as error:
        raise WorkbenchError(f"{key} cannot be inflated ({error}): copy or download it again") from None
    if not inflater.eof or inflater.unused_data:
        raise WorkbenchError(f"{key} must be one deflated document of at most {MOST_BYTES:,} bytes: it is damaged")
    return document

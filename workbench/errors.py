"""The exceptions of the workbench, as one family.

A message says what was expected, what was got, and what to do about it. Everything that a user can cause
is a `WorkbenchError`, so that a script, a panel or the shell needs to catch only one thing.
"""


class WorkbenchError(ValueError):
    """Input, options or an installation that cannot work; the message says what to do.

    >>> import workbench as wb
    >>> try:
    ...     wb.Particles([[0.0, 0.0, float("nan")]])
    ... except wb.WorkbenchError as error:
    ...     print(error)
    positions must be finite; got nan or infinity on axis 2
    """


class GuaranteeBroken(WorkbenchError):
    """A promise about decoded data does not hold: a damaged or foreign archive, or a bug to report."""

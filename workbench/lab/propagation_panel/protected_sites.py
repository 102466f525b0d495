"""The choice of the sites that are protected: all, or some that a campaign or a script has named."""

from __future__ import annotations

from typing import Any

from workbench.lab.controls import Choice


class ProtectedSites(Choice):
    """All sites, or those that the state has named so far.

    >>> sites = ProtectedSites()
    >>> sites._place(("waves", "power"))
    (1, 'waves, power')
    """

    def __init__(self) -> None:
        super().__init__("protect", "protect", {"all sites": None}, about="protected sites")

    def _place(self, value: Any) -> tuple[int, str]:
        if value not in self._values:
            self._offer(", ".join(value), value)
        return super()._place(value)

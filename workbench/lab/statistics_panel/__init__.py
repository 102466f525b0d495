"""The panel of `wb.lab.statistics`."""

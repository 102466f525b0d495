"""From what must hold to the codec and the bound with which it holds: `wb.find_bound`."""

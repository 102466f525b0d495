"""What a codec will do with a field, without running it on the whole: `wb.predict`."""

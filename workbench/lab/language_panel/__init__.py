"""The panel of errors inside a language model."""

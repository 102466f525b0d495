"""Decoding in another process, for codecs whose libraries trust the bytes that they get.

A forged payload can crash such a library, make it loop, or make it ask for any amount of memory. A checksum is no help,
since whoever forges a file forges that too. In a process with limits, all of this becomes an error about one chunk. It is
no sandbox: code that a library is tricked into running there has the rights of the user.

`isolated.py` is the codec that sends its work away, `question.py` what is sent, `decoders.py` the processes, `process.py`
what runs in them, `limits.py` what they may use, and `exchange.py` how data pass between them.
"""

from workbench.codecs.isolation.isolated import CannotIsolate, Isolated, isolated

__all__ = ["CannotIsolate", "Isolated", "isolated"]

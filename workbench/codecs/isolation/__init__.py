"""Decoding in another process, for codecs whose libraries trust their input.

A forged payload can crash such a library, make it loop, or make it ask for any amount of memory. A checksum does not help,
because it can be forged too. In a process with limits, all of this becomes an error about one chunk. It is no sandbox: code
that a library is tricked into running there has the rights of the user.

`isolated.py` is the codec that delegates decoding, `question.py` a request, `decoders.py` the pool of processes,
`process.py` their program, `limits.py` their resource limits, and `exchange.py` the transfer of data.
"""

from workbench.codecs.isolation.isolated import CannotIsolate, Isolated, isolated

__all__ = ["CannotIsolate", "Isolated", "isolated"]

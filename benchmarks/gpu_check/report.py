"""One JSON file and one Markdown file for a run, written anew after each part, so that a run cut short leaves results."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import timing

from gpu_check.machine import Compiling
from gpu_check.speed import Row


@dataclass
class Report:
    """What has been found so far."""

    machine: dict[str, str]
    host_kernels: str
    agreement: dict[str, Any] = field(default_factory=dict)
    programs: list[dict[str, Any]] = field(default_factory=list)
    compile_seconds: dict[str, float] = field(default_factory=dict)
    not_compiled: list[str] = field(default_factory=list)
    not_compared: bool = False   # nobody asked for it
    failed: dict[str, str] = field(default_factory=dict)   # parts that ended with an error
    left_out: list[str] = field(default_factory=list)      # parts for which there was no time
    interrupted: str = ""   # the part in which the run was ended from outside
    copy_bandwidth: float | None = None
    snapshot: str = ""
    rows: list[Row] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether no comparison differed, no program found a fault, and nothing failed or was cut off."""
        broken = self.failed or self.interrupted or any(row.failed for row in self.rows)
        agrees = self.not_compared or bool(self.agreement.get("holds"))
        return agrees and not broken and all(each["passed"] is not False for each in self.programs)

    def compiled_in(self, found: Compiling) -> None:
        """Note how long compiling took, and what was not compiled beforehand."""
        self.compile_seconds = found.seconds
        self.not_compiled = [f"{name}: {why}" for name, why in sorted(found.failed.items())]
        if found.left:
            self.not_compiled.append(f"{found.left} variants, for which there was no time: compiled when first used")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = {name: value for name, value in vars(self).items() if name != "rows"}
        return {"holds": self.holds, **plain, "rows": [row.to_dict() for row in self.rows]}

    def markdown(self) -> str:
        """As people read it."""
        parts = ["# GPU check", *self._trouble(), self._machine(), "## Agreement with the CPU", self._agreement()]
        if self.programs:
            rows: list[list[object]] = [[each["name"], verdict(each["passed"]), each["told"]] for each in self.programs]
            parts += ["## Other programs", timing.table(["program", "passed", ""], rows)]
        if self.rows:
            parts += ["## Speed", self._speed()]
        return "\n\n".join(part.strip() for part in parts) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write both files, named after the date."""
        folder.mkdir(parents=True, exist_ok=True)
        name = f"gpu-{self.machine['date'][:10]}"
        files = {".json": json.dumps(self.to_dict(), indent=1) + "\n", ".md": self.markdown()}
        for suffix, text in files.items():
            (folder / f"{name}{suffix}").write_text(text)
        return [folder / f"{name}{suffix}" for suffix in files]

    def _trouble(self) -> list[str]:
        """What is wrong with the run as a whole."""
        lines = [f"- failed: {name}: {why}" for name, why in self.failed.items()]
        lines += [f"- left out: {name}: no time left" for name in self.left_out]
        lines += [f"- not compiled beforehand: {each}" for each in self.not_compiled[:10]]
        if self.interrupted:
            lines.append(f"- interrupted in the part {self.interrupted!r}: what follows is what was found until then")
        return ["\n".join(lines)] if lines else []

    def _machine(self) -> str:
        given = {**self.machine, "CPU kernels": self.host_kernels, "whole run": f"{self.seconds:.0f} s"}
        if self.compile_seconds:
            longest = max(self.compile_seconds, key=lambda name: self.compile_seconds[name])
            total, most = sum(self.compile_seconds.values()), self.compile_seconds[longest]
            given["compiling"] = f"{total:.0f} s in several processes; longest {longest}, {most:.1f} s"
        if self.copy_bandwidth is not None:
            given["copy bandwidth"] = f"{self.copy_bandwidth / 1e9:.0f} GB/s, read and written bytes together"
            given["snapshot"] = self.snapshot
        return timing.table(["machine", ""], [[name, value] for name, value in given.items()])

    def _agreement(self) -> str:
        found = self.agreement
        if not found:
            return "Not compared."
        lines = [
            f"{found['agreed']:,} results are the CPU's, bit for bit; {len(found['different'])} differ; "
            f"{len(found['failed'])} cases failed.",
            f"{found['launches_compared']:,} launches compared, of {found['kernel_variants_compared']} kernel variants; "
            f"{len(found['kernel_differences'])} arrays differ.",
        ]
        if found["kernels_never_launched"]:
            lines.append(f"Never launched: {', '.join(found['kernels_never_launched'])}.")
        wrong = [f"- {text}" for text in (*found["different"], *found["kernel_differences"])][:40]
        wrong += [f"- failed: {name}: {why}" for name, why in found["failed"].items()][:40]
        reasons: dict[str, list[str]] = {}
        for name, why in found["left_out"].items():
            reasons.setdefault(why, []).append(name)
        left = [f"- left out, {why}: {len(names)} cases: {'; '.join(names)[:300]}" for why, names in reasons.items()]
        return "\n".join([" ".join(lines), "", *wrong, *left])

    def _speed(self) -> str:
        header = ["part", "what", "particles", "ms", "rate", "of copy bandwidth", ""]
        rows: list[list[object]] = []
        for row in self.rows:
            time = "" if row.seconds is None else f"{row.seconds * 1e3:.2f}"
            fraction = "" if row.fraction is None else f"{row.fraction:.3f}"
            rows.append([row.part, row.what, f"{row.particles:,}", time, row.rate, fraction, row.note])
        return timing.table(header, rows)


def verdict(passed: bool | None) -> str:
    """A verdict as a word.

    >>> verdict(True), verdict(False), verdict(None)
    ('yes', 'NO', 'not run')
    """
    return {True: "yes", False: "NO", None: "not run"}[passed]

"""A pipeline made of any `torch.nn.Module`: each module that returns a tensor is a site, by forward hooks.

The graph between modules is not known to hooks, so every site that is computed later counts as dependent. A resumed run
calls no module that had finished before the changed site: its forward method returns what it returned before.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.computation import Results
from workbench.propagation.error_sizes import change_of, root_mean_square
from workbench.propagation.execution import Interventions, changed_by, checked
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.stage import Detected, Stage, StageFailed
from workbench.propagation.tolerance import Tolerance

INPUT, OUTPUT = "input", "output"


def from_torch(module: Any, example: Any, *, tolerance: Tolerance | None = None) -> Pipeline:
    """A pipeline whose sites are the outputs of the modules in a module, by their names, in the order of computation.

    `example` is an input, an array or a tensor. A module that is called again is `name (2)`; what the whole returns is
    `output`. Values of type bfloat16 are shown as float32: `BitFlip(..., format="bfloat16")` flips their own bits.
    """
    torch = _torch()
    if not isinstance(module, torch.nn.Module):
        raise WorkbenchError(f"from_torch needs a torch.nn.Module; got {type(module).__name__}")
    return TorchPipeline(module, example, tolerance)


@dataclass(frozen=True)
class _Call:
    """One call of a module: its site, and whether it returned a tensor alone, so that it can be replaced."""

    site: str
    module: str
    plain: bool
    dtype: Any
    device: Any


class TorchPipeline(Pipeline):
    """The pipeline of a module; its stages cannot be computed one by one, only resumed."""

    whole = True

    def __init__(self, module: Any, example: Any, tolerance: Tolerance | None = None) -> None:
        self._module = module
        self._calls: list[_Call] = []
        self._dtype = getattr(example, "dtype", None) if isinstance(example, _torch().Tensor) else None
        self._lock = threading.Lock()   # hooks are set on the module itself
        sites = self._recorded(example)
        stages = [
            Stage(site, _alone(site), (before,), (site,)) for before, site in zip([INPUT, *sites], sites, strict=False)
        ]
        super().__init__(stages, inputs=INPUT, outputs=OUTPUT, tolerance=tolerance, name=type(module).__name__)

    def _recorded(self, example: Any) -> list[str]:
        """The sites, in the order in which modules finish."""
        self._calls = []

        def record(site: str, name: str, output: Any) -> Any:
            tensor = _tensor_in(output)
            if tensor is not None:
                self._calls.append(_Call(site, name, tensor is output, tensor.dtype, tensor.device))
            return None

        with self._hooked(record):
            self._forward(_to_array(example))
        if not self._calls or self._calls[-1].site != OUTPUT:
            raise WorkbenchError("from_torch needs a module that returns a tensor, or a tuple with one")
        return [call.site for call in self._calls]

    def require_deterministic(self, run: Run) -> None:
        """Compute all again, and refuse another result."""
        again = self.run({INPUT: run.raw[INPUT]})
        for site in self.sites:
            if bool(np.any(change_of(run[site], again[site]))):
                raise StageFailed(
                    f"module {site!r} must return the same for the same input; it does not: call module.eval() to turn off "
                    "dropout, and torch.use_deterministic_algorithms(True)"
                )

    def first_order(self, run: Run, changes: Mapping[str, Array]) -> dict[str, Array | None]:
        """A central difference of the whole, in the direction of the change."""
        if any(run[site].dtype.kind not in "f" or not np.isfinite(change).all() for site, change in changes.items()):
            return {site: changes.get(site) for site in self.after(changes)}
        step = min(
            float(np.finfo(run[site].dtype).eps) ** (1 / 3) * (root_mean_square(run[site]) or 1.0)
            / (float(abs(change).max()) or 1.0)
            for site, change in changes.items()
        )

        def moved(by: float) -> Run:
            return self.resume(run, {site: (run[site] + by * d).astype(run[site].dtype) for site, d in changes.items()})

        above, below = moved(step), moved(-step)
        found: dict[str, Array | None] = {
            site: (above[site].astype(np.float64) - below[site]) / (2 * step) for site in self.after(changes)
        }
        return found | dict(changes)

    def results(self, run: Run, each: Sequence[Interventions]) -> list[Results | Detected | StageFailed]:
        """The results of a finished run with each of several changes, one after the other."""
        return [self._results(run, at) for at in each]

    def _results(self, run: Run, at: Interventions) -> Results | Detected | StageFailed:
        try:
            changed = self.resume(run, at)
        except (Detected, StageFailed) as error:
            return error
        return {site: changed.raw[site] for site in self.outputs}

    def _computed(self, given: Mapping[str, Any], at: Interventions, before: Run | None) -> Run:
        for site in at:
            self.stage_of(site)   # refuses unknown sites
        values: dict[str, Any] = dict(before.raw) if before else {}
        notes: dict[str, Any] = {}
        computed: list[str] = []
        findings: dict[str, Any] = {}
        source = values[INPUT] = self._placed(INPUT, np.asarray(given[INPUT]), at, notes, findings)

        def watch(site: str, name: str, output: Any) -> Any:
            tensor = _tensor_in(output)
            if tensor is None:
                return None
            if site not in self.sites:
                raise WorkbenchError(f"the module must be called as with the example; it now also calls {site!r}")
            computed.append(site)
            array = _to_array(tensor)
            if before is not None and array.shape != before[site].shape:
                raise WorkbenchError(f"{site!r} must keep its shape {before[site].shape}; got {array.shape}")
            placed = values[site] = self._placed(site, array, at, notes, findings)
            return None if placed is array else _replaced(output, tensor, _like(placed, tensor))

        with self._lock, self._hooked(watch), self._prefix(at, before) as skipped:
            try:
                self._forward(source)
            except WorkbenchError:
                raise
            except Exception as error:
                raise StageFailed(f"module {self.name} raised {type(error).__name__}: {error}") from error
        return Run(self, values, tuple(site for site in computed if site not in skipped), notes, findings)

    def _placed(
        self, site: str, array: np.ndarray, at: Interventions, notes: dict[str, Any], findings: dict[str, Any]
    ) -> np.ndarray:
        """The array at a site after the intervention and the checks there, which are noted."""
        if site in at:
            done = changed_by(site, array, at[site])
            array, notes[site] = done.values, done.notes
        if site in self.checks:
            array, _, findings[site] = checked(self.checks[site], [], array, None)
        return array

    def _forward(self, array: np.ndarray) -> None:
        torch = _torch()
        device = next((parameter.device for parameter in self._module.parameters()), "cpu")
        with torch.no_grad():
            self._module(torch.from_numpy(np.array(array)).to(device=device, dtype=self._dtype))

    def given(self, x: Any) -> dict[str, Any]:
        """The input, as an array of NumPy."""
        given = x[INPUT] if isinstance(x, Mapping) and set(x) == {INPUT} else x
        return super().given(_to_array(given))

    def like(self, stages: Any = None, checks: Any = None) -> Self:
        """The same pipeline with other checks; it takes turns with this one, as hooks are set on the module itself."""
        made = super().like(None, checks)
        made._lock = self._lock
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @contextlib.contextmanager
    def _hooked(self, watch: Any) -> Iterator[None]:
        """Call `watch(site, module name, output)` after each module; what it returns replaces the output."""
        counts: dict[str, int] = {}
        handles = []

        def hook_of(name: str) -> Any:
            def hook(module: Any, arguments: Any, output: Any) -> Any:
                counts[name] = counts.get(name, 0) + 1
                base = name or OUTPUT
                return watch(base if counts[name] == 1 else f"{base} ({counts[name]})", name, output)

            return hook

        try:
            for name, module in self._module.named_modules():
                handles.append(module.register_forward_hook(hook_of(name)))
            yield
        finally:
            for handle in handles:
                handle.remove()

    @contextlib.contextmanager
    def _prefix(self, at: Interventions, before: Run | None) -> Iterator[set[str]]:
        """Let modules that finished before the first changed site return what they returned then."""
        first = min((self.sites.index(site) for site in at), default=0)
        skipped: dict[str, _Call] = {}
        if before is not None and INPUT not in at:
            calls: dict[str, list[_Call]] = {}
            for call in self._calls:
                calls.setdefault(call.module, []).append(call)
            for name, own in calls.items():
                if name and len(own) == 1 and own[0].plain and self.sites.index(own[0].site) < first:
                    skipped[name] = own[0]
        modules = dict(self._module.named_modules())
        try:
            for name, call in skipped.items():
                assert before is not None
                modules[name].forward = _returning(before[call.site], call)
            yield {call.site for call in skipped.values()}
        finally:
            for name in skipped:
                del modules[name].forward   # the method of the class is there again


def _returning(array: np.ndarray, call: _Call) -> Any:
    tensor = _torch().from_numpy(np.array(array)).to(device=call.device, dtype=call.dtype)
    return lambda *arguments, **named: tensor


def _alone(site: str) -> Any:
    def refuse(*arrays: Any) -> Any:
        raise WorkbenchError(f"{site!r} is part of a module and cannot be computed alone: use run or resume")

    return refuse


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise WorkbenchError("from_torch needs torch, which is not installed: pip install 'lossbench[llm]'") from None
    return torch


def _tensor_in(output: Any) -> Any:
    """The tensor that a module returns, alone or first in a tuple; None where there is none."""
    torch = _torch()
    first = output[0] if isinstance(output, tuple) and output else output
    return first if isinstance(first, torch.Tensor) else None


def _replaced(output: Any, tensor: Any, new: Any) -> Any:
    return new if tensor is output else (new, *output[1:])


def _to_array(value: Any) -> np.ndarray:
    torch = _torch()
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    host = value.detach().cpu()
    return np.array((host.float() if host.dtype == torch.bfloat16 else host).numpy())


def _like(array: np.ndarray, tensor: Any) -> Any:
    return _torch().from_numpy(np.array(array)).to(device=tensor.device, dtype=tensor.dtype)

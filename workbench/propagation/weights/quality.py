"""How much worse a changed model is: any function of its tensors, or the divergence of its predictions.

The accuracy on some hundred samples moves in steps, so bounds that are fitted to it fail on others. The Kullback-Leibler
divergence from the predictions of the unchanged model is smooth, adds up over the tensors while it is small, and holds
about alike on inputs that were not used.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.backend import Array, to_host
from workbench.errors import WorkbenchError, briefly
from workbench.propagation.language.gguf_file import in_pipelines, name_in_pipelines
from workbench.propagation.language.model import LanguageModel
from workbench.propagation.language.pipeline import LanguagePipeline
from workbench.propagation.language.quality import log_probabilities, relative_entropies
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.weights.sources import Tensors, is_module

Changes = Mapping[str, np.ndarray]
NEARLY = 1e-9   # quality of the original that counts as none


class KL:
    """The mean Kullback-Leibler divergence, in nats, of a model's predictions from those of the unchanged model.

    `model` is a function of the tensors and of the inputs that returns logits (a row of them for each prediction), a module
    of torch, a pipeline of which tensors are inputs, or a language model or its pipeline. `inputs` are what it takes beside
    the tensors: for language models a text, tokens, or a list of these. Pipelines compute only what depends on the
    tensors that have changed: of a language model, the blocks from the changed one on.

    >>> def logits(tensors, x):
    ...     return x @ tensors["w"]
    >>> quality = KL(logits, np.eye(2)).of({"w": np.eye(2)})
    >>> quality.changed({}), round(quality.changed({"w": 2 * np.eye(2)}), 4)
    (0.0, 0.0826)
    """

    def __init__(self, model: Any, inputs: Any) -> None:
        known = callable(model) or isinstance(model, Pipeline | LanguageModel) or is_module(model)
        if not known:
            raise WorkbenchError(
                "KL needs a function of tensors and inputs, a pipeline, a torch module or a language model; got "
                f"{briefly(model)}"
            )
        if isinstance(model, LanguagePipeline):
            model = model.model
        self.model, self.inputs = model, inputs
        if isinstance(model, LanguageModel):
            several = isinstance(inputs, list | tuple) and bool(inputs) and not isinstance(inputs[0], int)
            self.inputs = [model.tokens(text) for text in (inputs if several else [inputs])]
            if not all(len(tokens) for tokens in self.inputs):
                raise WorkbenchError("KL of a language model needs a text; got none")

    @property
    def digest(self) -> str:
        """What names the inputs: the beginning of the SHA-256 of their bytes."""
        digest = hashlib.sha256()
        _add(digest, self.inputs)
        return digest.hexdigest()[:16]

    def of(self, tensors: Changes) -> Measure:
        """The divergence for changes of these tensors, with what is computed once."""
        if isinstance(self.model, LanguageModel):
            return _OfLanguageModel(self.model, self.inputs, tensors)
        if isinstance(self.model, Pipeline):
            return _OfPipeline(self.model, self.inputs, tensors)
        return _OfFunction(_of_module(self.model) if is_module(self.model) else self.model, self.inputs, tensors)

    def __repr__(self) -> str:
        return f"KL({getattr(self.model, '__name__', type(self.model).__name__)}, inputs {self.digest})"


class Measure(ABC):
    """The quality of one model with some of its tensors changed: 0 for none, larger for worse."""

    @abstractmethod
    def changed(self, changes: Changes) -> float:
        """How much worse the model is with these tensors."""


class _OfFunction(Measure):
    """Of a function that returns logits."""

    def __init__(self, function: Callable[[Changes, Any], Any], inputs: Any, tensors: Changes) -> None:
        self._function, self._inputs, self._tensors = function, inputs, tensors
        self._exact = _logarithms(function(tensors, inputs))

    def changed(self, changes: Changes) -> float:
        return _divergence(self._exact, self._function({**self._tensors, **changes}, self._inputs))


class _OfPipeline(Measure):
    """Of a pipeline whose inputs are the tensors, and others."""

    def __init__(self, pipeline: Pipeline, inputs: Any, tensors: Changes) -> None:
        others = [name for name in pipeline.inputs if name not in tensors]
        given = inputs if isinstance(inputs, Mapping) else dict.fromkeys(others, inputs)
        if strangers := [name for name in tensors if name not in pipeline.inputs]:
            raise WorkbenchError(
                f"tensors must be inputs of the pipeline, which has {', '.join(pipeline.inputs)}; got {strangers[0]!r}"
            )
        if len(pipeline.outputs) != 1:
            raise WorkbenchError(f"KL needs a pipeline with one output, logits; got {', '.join(pipeline.outputs)}")
        self._pipeline, (self._output,) = pipeline, pipeline.outputs
        self._run = pipeline.run({**{name: given[name] for name in others if name in given}, **tensors})
        self._exact = _logarithms(self._run[self._output])

    def changed(self, changes: Changes) -> float:
        return _divergence(self._exact, self._pipeline.resume(self._run, changes)[self._output])


class _OfLanguageModel(Measure):
    """Of a language model, over the tokens of all texts."""

    def __init__(self, model: LanguageModel, texts: Sequence[np.ndarray], tensors: Changes) -> None:
        self._model = model
        self._names = {name: name_in_pipelines(name) for name in tensors}
        known = {*model.weights} - ({"output"} if model.tied else set())
        taken = [own for own in self._names.values() if own in known]
        if not taken:
            raise WorkbenchError(
                f"tensors must be weights of {model.name}, such as {next(iter(model.weights))!r}; got "
                f"{next(iter(tensors))!r}"
            )
        self._pipeline = model.pipeline(weights=taken)
        self._runs = [self._pipeline.run(tokens) for tokens in texts]
        self._exact = [_logarithms(run["logits"]) for run in self._runs]

    def changed(self, changes: Changes) -> float:
        given = {
            f"{self._names[name]} weight": np.asfortranarray(
                in_pipelines(name, np.asarray(values, np.float32), self._model.shape)
            )
            for name, values in changes.items()
        }
        rows = [
            (_divergence(exact, self._pipeline.resume(run, given)["logits"]), len(exact))
            for run, exact in zip(self._runs, self._exact, strict=True)
        ]
        return sum(mean * count for mean, count in rows) / sum(count for _, count in rows)


class _OfAny(Measure):
    """Of a function of all tensors that returns the quality itself."""

    def __init__(self, function: Callable[[Changes], float], tensors: Tensors) -> None:
        self._function, self._tensors = function, tensors

    def changed(self, changes: Changes) -> float:
        return self._function(self._tensors.whole({**self._tensors.arrays, **changes}))


class Checked(Measure):
    """A measure whose every answer is a number, and which is 0 for the original."""

    def __init__(self, measure: Measure, budget: float, unit: str = "") -> None:
        self._measure, self.unit = measure, unit
        first = self.changed({}, "the original")
        if abs(first) > NEARLY * budget:
            raise WorkbenchError(
                f"quality must be 0 for the original, and rise as the model gets worse; got {first:.6g}: subtract that"
            )

    def changed(self, changes: Changes, what: str = "changed tensors") -> float:
        """The answer for these tensors; `what` names them where there is none."""
        try:
            found = float(self._measure.changed(changes))
        except WorkbenchError:
            raise
        except Exception as error:
            raise WorkbenchError(f"quality failed for {what}: {type(error).__name__}: {error}") from error
        if math.isnan(found):
            raise WorkbenchError(f"quality must be a number, or infinity for a useless model; got NaN for {what}")
        return found


def measure_of(quality: Any, tensors: Tensors, budget: float) -> Checked:
    """How much worse these tensors become when some of them change."""
    if isinstance(quality, KL):
        arrays = tensors.arrays if isinstance(quality.model, LanguageModel) else tensors.whole(tensors.arrays)
        try:
            measure: Measure = quality.of(arrays)
        except WorkbenchError:
            raise
        except Exception as error:
            raise WorkbenchError(f"quality failed for the original: {type(error).__name__}: {error}") from error
        several_names = tensors.tied and arrays is not tensors.arrays
        return Checked(_Whole(measure, tensors) if several_names else measure, budget, "nats")
    if not callable(quality):
        raise WorkbenchError(f"quality must be a function of the tensors, or wb.KL(...); got {briefly(quality)}")
    return Checked(_OfAny(quality, tensors), budget)


class _Whole(Measure):
    """A measure that gets changes of tied weights under all of their names."""

    def __init__(self, measure: Measure, tensors: Tensors) -> None:
        self._measure, self._tensors = measure, tensors

    def changed(self, changes: Changes) -> float:
        return self._measure.changed(self._tensors.whole(changes))


def _of_module(module: Any) -> Callable[[Changes, Any], Any]:
    """A module of torch as a function of its tensors, which are changed in a copy of its state."""
    import torch

    state = module.state_dict()

    def logits(tensors: Changes, inputs: Any) -> np.ndarray:
        given = {
            name: torch.tensor(np.asarray(tensors[name], _plain(tensors[name].dtype))).to(own.dtype)
            for name, own in state.items()
        }
        x = inputs if isinstance(inputs, torch.Tensor) else torch.as_tensor(np.asarray(inputs))
        was, _ = module.training, module.eval()
        try:
            with torch.no_grad():
                found: np.ndarray = torch.func.functional_call(module, given, (x,), tie_weights=False).float().numpy()
        finally:
            module.train(was)
        return found

    return logits


def _plain(dtype: np.dtype) -> Any:
    """A type that torch knows in NumPy: numbers of 16 bits that NumPy lacks are widened."""
    return np.float32 if dtype.kind == "V" or dtype.name not in np.sctypeDict else dtype


def _logarithms(logits: Array) -> np.ndarray:
    """The logarithms of the probabilities in each row of logits."""
    rows = to_host(logits) if not hasattr(logits, "detach") else logits.detach().cpu().numpy()
    rows = np.asarray(rows)
    if rows.ndim < 1 or not rows.size or rows.dtype.kind != "f":
        raise WorkbenchError(
            f"KL needs logits, floating-point numbers whose last axis is that of classes; got {briefly(rows)}"
        )
    with np.errstate(all="ignore"):
        return log_probabilities(rows.reshape(-1, rows.shape[-1]))


def _divergence(exact: np.ndarray, logits: Array) -> float:
    """The mean over all rows; infinite where a prediction is none."""
    changed = _logarithms(logits)
    if changed.shape != exact.shape:
        raise WorkbenchError(f"a changed model must return logits of the same shape; got {changed.shape} rows and classes")
    with np.errstate(all="ignore"):
        rows = relative_entropies(exact, changed)
    return float(np.maximum(rows, 0.0).mean()) if np.isfinite(rows).all() else math.inf


def _add(digest: Any, given: Any) -> None:
    """Add inputs of any structure to a digest."""
    if isinstance(given, Mapping):
        for name in sorted(given, key=str):
            digest.update(f"{name}:".encode())
            _add(digest, given[name])
    elif isinstance(given, list | tuple) and given and hasattr(given[0], "shape"):
        for each in given:
            _add(digest, each)
    elif isinstance(given, str):
        digest.update(given.encode())
    else:
        array = np.ascontiguousarray(given.detach().cpu().numpy() if hasattr(given, "detach") else to_host(given))
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())

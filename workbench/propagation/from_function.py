"""A pipeline made of a function: each statement of its body is a stage, and each array that it names is a site.

The source is read, not guessed from a run: `density = deposit(x)` becomes the stage `density`, whatever `deposit` does and
whichever library it uses. Variables that are no arrays (lengths, names, lists) are no sites; their statements run again
inside the stages that need them. Loops and conditions are one stage each. The traced pipeline must return the same as
the function on the example, or it is refused.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import backend
from workbench.errors import WorkbenchError
from workbench.propagation.containers import array_of, is_labelled
from workbench.propagation.error_sizes import change_of
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.stage import Stage
from workbench.propagation.tolerance import Tolerance

RESULT = "result"
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_REFUSED: Mapping[type[ast.AST], str] = {
    ast.Yield: "yield", ast.YieldFrom: "yield", ast.Await: "await", ast.Global: "global", ast.Nonlocal: "nonlocal",
}


def from_function(
    function: Callable[..., Any], example: Any, *, tolerance: Tolerance | None = None, **fixed: Any
) -> Pipeline:
    """A pipeline of the named steps of a function of arrays, of NumPy, CuPy or xarray.

    `example` is its input, or a dict of several; other parameters are `fixed`, or have their defaults.

    >>> def contrast_variance(density, power=2):
    ...     contrast = density / density.mean() - 1
    ...     return (contrast**power).mean()
    >>> from_function(contrast_variance, np.array([1.0, 2.0, 3.0])).sites
    ['density', 'contrast', 'result']
    """
    tree = _definition(function)
    inputs, known = _arguments(function, fixed)
    given = dict(example) if isinstance(example, Mapping) and not is_labelled(example) else {inputs[0]: example}
    if set(given) != set(inputs):
        raise WorkbenchError(f"example must be an array, or a dict of {', '.join(inputs)}; got {', '.join(given)}")
    tracer = _Tracer({**_around(function, tree), **known}, given)
    for statement in _body(tree):
        tracer.add(statement)
    if not tracer.outputs:
        raise WorkbenchError(f"{function.__name__} must return arrays; it returns nothing")
    pipeline = Pipeline(
        tracer.stages, inputs=inputs, outputs=tracer.outputs, tolerance=tolerance, name=function.__name__
    )
    _require_equal(pipeline, function, given, known)
    return pipeline


@dataclass(frozen=True, eq=False)
class _Step:
    """A statement as code, the names that it takes from sites, and those of them that it may change."""

    code: Any
    reads: Mapping[str, str]      # name -> site
    changes: frozenset[str]


@dataclass(frozen=True, eq=False)
class _Program:
    """The function of a stage: some statements on the arrays of its inputs."""

    around: Mapping[str, Any]
    steps: tuple[_Step, ...]
    inputs: tuple[str, ...]
    results: tuple[str, ...]

    def __call__(self, *arrays: Any) -> Any:
        found = dict(zip(self.inputs, arrays, strict=True))
        names = dict(self.around)
        for step in self.steps:
            for name, site in step.reads.items():
                names[name] = _given(found[site], name in step.changes)
            exec(step.code, names)
        results = tuple(names[name] for name in self.results)
        return results if len(results) > 1 else results[0]


@dataclass(eq=False)
class _Tracer:
    """Reads one statement after the other, and runs it on the example to see which names are arrays."""

    around: Mapping[str, Any]
    values: dict[str, Any]
    stages: list[Stage] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    sites: dict[str, str] = field(default_factory=dict)            # name -> its site now
    helpers: dict[str, tuple[_Step, ...]] = field(default_factory=dict)   # name that is no array -> what makes it
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.values = dict(self.values)
        self.sites = {name: name for name in self.values}
        self.used = set(self.sites)

    def add(self, statement: ast.stmt) -> None:
        """The next statement of the body."""
        if self.outputs:
            raise WorkbenchError(f"line {statement.lineno}: return must be the last statement")
        if isinstance(statement, ast.Return):
            self._return(statement)
        else:
            self._statement(statement)

    def _return(self, statement: ast.Return) -> None:
        """Each element of a returned tuple or dict is an output; one that has no name yet gets one."""
        value = statement.value
        named: list[tuple[str, ast.expr]] = []
        if isinstance(value, ast.Tuple):
            named = [(f"{RESULT} {place}", each) for place, each in enumerate(value.elts, 1)]
        elif isinstance(value, ast.Dict) and all(isinstance(getattr(key, "value", None), str) for key in value.keys):
            named = [(str(getattr(k, "value", "")), each) for k, each in zip(value.keys, value.values, strict=True)]
        elif value is not None:
            named = [(RESULT, value)]
        for name, each in named:
            if isinstance(each, ast.Name) and each.id in self.sites:
                self.outputs.append(self.sites[each.id])
                continue
            variable = f"__{len(self.outputs)}_returned"
            assignment = ast.copy_location(ast.Assign([ast.Name(variable, ast.Store())], each), statement)
            self._statement(ast.fix_missing_locations(assignment), {variable: name})
            if variable not in self.sites:
                raise WorkbenchError(
                    f"line {statement.lineno}: the function must return arrays; got {type(self.values[variable]).__name__}"
                )
            self.outputs.append(self.sites[variable])

    def _statement(self, statement: ast.stmt, called: Mapping[str, str] | None = None) -> None:
        seen = _Names.of(statement)
        local = {*self.sites, *self.helpers}
        reads = {name for name in seen.loaded | seen.changed if name in local}
        if not isinstance(statement, ast.Assign | ast.AnnAssign):   # a branch or a loop may leave a name as it was
            reads |= seen.stored & local
        changes = seen.changed | (reads if isinstance(statement, ast.Expr) else set())
        written = list(dict.fromkeys([*sorted(seen.stored), *sorted(changes & reads)]))
        code = compile(ast.Module([statement], []), f"<{getattr(statement, 'lineno', 0)}>", "exec")
        step = _Step(code, {name: self.sites[name] for name in reads if name in self.sites}, frozenset(changes))
        steps = self._with_helpers(step, reads)
        names = {**self.around, **{name: copy.deepcopy(value) for name, value in self.values.items()}}
        with np.errstate(all="ignore"):
            exec(code, names)
        for name in written:
            self.values[name] = names[name]
        arrays = tuple(name for name in written if _is_array(self.values[name]))
        for name in set(written) - set(arrays):
            self.helpers[name] = steps
            self.sites.pop(name, None)
        if arrays:
            self._stage(arrays, steps, called or {})

    def _stage(self, arrays: tuple[str, ...], steps: tuple[_Step, ...], called: Mapping[str, str]) -> None:
        read = tuple(dict.fromkeys(site for step in steps for site in step.reads.values()))
        if not read:   # an array that depends on no input, such as a grid: a constant, which is made where it is used
            for name in arrays:
                self.helpers[name] = steps
            return
        outputs = tuple(self._site(called.get(name, name)) for name in arrays)
        program = _Program(self.around, steps, read, arrays)
        self.stages.append(Stage(", ".join(outputs), program, read, outputs))
        for name, site in zip(arrays, outputs, strict=True):
            self.sites[name] = site
            self.helpers.pop(name, None)

    def _with_helpers(self, step: _Step, reads: Iterable[str]) -> tuple[_Step, ...]:
        """The statements that make the names that are no arrays, and then the step."""
        needed = [each for name in sorted(reads) for each in self.helpers.get(name, ())]
        return (*dict.fromkeys(needed), step)

    def _site(self, name: str) -> str:
        """A name for a site that is not used yet: the second `x` is `x (2)`."""
        found, number = name, 1
        while found in self.used:
            number += 1
            found = f"{name} ({number})"
        self.used.add(found)
        return found


@dataclass(frozen=True)
class _Names:
    """The names that a statement reads, binds, and changes in place."""

    loaded: set[str]
    stored: set[str]
    changed: set[str]

    @classmethod
    def of(cls, statement: ast.stmt) -> _Names:
        found = cls(set(), set(), set())
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found.stored.add(statement.name)
            inner = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            return cls(inner - found.stored, found.stored, set())
        found._visit(statement)
        return found

    def _visit(self, node: ast.AST) -> None:
        if type(node) in _REFUSED or isinstance(node, ast.Return):
            word = _REFUSED.get(type(node), "return")
            where = " inside a loop or condition" if word == "return" else ""
            raise WorkbenchError(f"line {getattr(node, 'lineno', '?')}: {word}{where} cannot be traced")
        if isinstance(node, _COMPREHENSIONS | ast.Lambda):
            self._inner(node)
            return
        if isinstance(node, ast.Name):
            (self.loaded if isinstance(node.ctx, ast.Load) else self.stored).add(node.id)
        if isinstance(node, ast.alias):
            self.stored.add((node.asname or node.name).split(".")[0])
        if isinstance(node, ast.AugAssign) or isinstance(getattr(node, "ctx", None), ast.Store):
            target = node.target if isinstance(node, ast.AugAssign) else node
            root = _root(target)
            if root and not (isinstance(target, ast.Name) and not isinstance(node, ast.AugAssign)):
                self.changed.add(root)
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _inner(self, node: ast.AST) -> None:
        """The names that a comprehension or lambda takes from outside."""
        own = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        own |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        self.loaded.update({each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - own)


def _root(target: ast.AST) -> str | None:
    """The variable inside of `x.a[0]`: x."""
    while isinstance(target, ast.Subscript | ast.Attribute | ast.Starred):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _definition(function: Callable[..., Any]) -> ast.FunctionDef:
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        raise WorkbenchError(f"from_function needs a function that was defined with `def`; got {function!r:.80}")
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise WorkbenchError(
            f"from_function reads the source of {function.__name__}, which is not there: define it in a file or a cell"
        ) from None
    tree = ast.parse(source).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise WorkbenchError(f"from_function needs a plain function; got {type(tree).__name__} {function.__name__}")
    return tree


def _arguments(function: Callable[..., Any], fixed: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of the arrays, and the values of the other parameters."""
    parameters = inspect.signature(function).parameters
    if unknown := sorted(set(fixed) - set(parameters)):
        raise WorkbenchError(f"{function.__name__} has the parameters {', '.join(parameters)}; got {', '.join(unknown)}")
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters.values()):
        raise WorkbenchError(f"{function.__name__} must name its parameters; it has * or **")
    known = {name: each.default for name, each in parameters.items() if each.default is not each.empty} | dict(fixed)
    inputs = tuple(name for name in parameters if name not in known)
    if not inputs:
        raise WorkbenchError(f"{function.__name__} needs a parameter for the data, without a default")
    return inputs, known


def _around(function: Callable[..., Any], tree: ast.FunctionDef) -> dict[str, Any]:
    """What the function takes from its module and the functions around it."""
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    return {node.id: known[node.id] for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in known}


def _body(tree: ast.FunctionDef) -> Sequence[ast.stmt]:
    """The statements, without the docstring."""
    first = tree.body[0]
    return tree.body[1:] if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else tree.body


def _is_array(value: Any) -> bool:
    """Whether a value can be a site: numbers that a computation made, but not lengths and counts of Python."""
    if isinstance(value, np.ndarray | np.generic) or backend.on_device(value):
        return value.dtype.kind in "fciub" and value.size > 0
    return (is_labelled(value) and array_of(value).dtype.kind in "fciub") or isinstance(value, float | complex)


def _given(value: Any, changed: bool) -> Any:
    """What a statement gets: a copy of what it changes, and scalars for arrays without axes."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value[()]
    if not changed:
        return value
    return value.copy(deep=True) if is_labelled(value) else value.copy()


def _require_equal(
    pipeline: Pipeline, function: Callable[..., Any], given: Mapping[str, Any], known: Mapping[str, Any]
) -> None:
    """Refuse a trace that returns something else than the function: it changed an array through another name."""
    direct = function(**copy.deepcopy(dict(given)), **known)
    results = list(direct.values()) if isinstance(direct, dict) else list(direct) if isinstance(direct, tuple) else [direct]
    traced = [pipeline.run(dict(given))[site] for site in pipeline.outputs]
    equal = len(results) == len(traced) and all(
        array_of(one).shape == other.shape and not np.any(change_of(array_of(one), other))
        for one, other in zip(results, traced, strict=True)
    )
    if not equal:
        raise WorkbenchError(
            f"the steps of {function.__name__} must return what the function returns; they do not: it probably changes an "
            "array through a second name or a view, or is not deterministic; make copies"
        )

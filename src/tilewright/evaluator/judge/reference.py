"""The reference: loaded from the problem's source, run at its own precision and in float64."""

from __future__ import annotations

import importlib.util
import inspect
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, Final

import torch

from tilewright.evaluator.judge.argument_trees import changed, leaves_of, mapped, tensors
from tilewright.evaluator.judge.number_formats import is_inexact
from tilewright.evaluator.judge.output_placement import OutputPlacement, memories
from tilewright.evaluator.judge.problem_modes import NO_MODES, ProblemModes
from tilewright.evaluator.judge.random_seeds import seed_generators
from tilewright.wire.frames import Fields
from tilewright.wire.names import DEVICE_MEMORY_TEXTS, NUMBERS
from tilewright.wire.sync_page import MAX_OUTPUTS

CUDA_OUT_OF_MEMORY: Final = 2
"""`cudaErrorMemoryAllocation`, the error code of a failed allocation in the CUDA runtime."""
FOLDER = "tilewright-problem-"
"""Beginning of the name of the folder from which the judge loads a problem."""
CPU = torch.device("cpu")


class ProblemFailure(Exception):
    """The problem's own code failed; the message names the step and the error."""

    def __init__(self, message: str, *, out_of_memory: bool = False) -> None:
        super().__init__(message)
        self.out_of_memory = out_of_memory
        """Whether torch, or the CUDA runtime below it, could not allocate device memory."""


@contextmanager
def problem_step(what: str) -> Iterator[None]:
    """Turn whatever problem code raises into `ProblemFailure`: it is foreign, and may raise all."""
    try:
        yield
    except Exception as error:
        text = f"{what}: {type(error).__name__}: {str(error)[:500]}{_line_of(error)}"
        raise ProblemFailure(text, out_of_memory=is_out_of_memory(error)) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that the device has too little memory."""
    if isinstance(error, ProblemFailure):
        return error.out_of_memory
    if isinstance(error, torch.AcceleratorError):
        return getattr(error, "error_code", None) == CUDA_OUT_OF_MEMORY
    # Libraries of CUDA say so in the text of a RuntimeError alone.
    texts = str(error) if isinstance(error, RuntimeError) else ""
    return isinstance(error, torch.OutOfMemoryError) or any(
        text in texts for text in DEVICE_MEMORY_TEXTS
    )


def _line_of(error: BaseException) -> str:
    """Return the innermost line of the problem's own file in a traceback, for a message."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        folder, file = os.path.split(frame.f_code.co_filename)
        if os.path.basename(folder).startswith(FOLDER):
            found = f" ({file}:{line} in {frame.f_code.co_name})"
    return found


def take_out_of_memory(reference: Reference) -> bool:
    """Tell whether an oracle lacked device memory since this was last asked."""
    found, reference.precision.ran_out_of_memory = reference.precision.ran_out_of_memory, False
    return found


@dataclass
class WrittenOutputs:
    """Arguments of a reference whose content after a call is an output."""

    with_returned: bool = False
    """Whether overwritten arguments are outputs even if the reference also returns tensors."""
    known: set[int] = field(default_factory=set)
    """Their indices, as far as calls have shown."""
    ignored: set[int] | None = None
    """Tensors, in order, that are overwritten and whose earlier values have no effect; `None`: not
    known yet."""


@dataclass
class PrecisionState:
    """A reference at precisions other than its own: a copy in float64, products in tf32."""

    double: Callable[..., Any] | None = None
    """The float64 oracle of a module; `None` until it is needed, and when its weights change."""
    is_slow: bool = False
    """Whether the oracle took too long to be asked again."""
    ran_out_of_memory: bool = False
    """Whether the device had too little memory for an oracle since the last answer that says so."""
    allows_tf32: bool = False
    """Whether this device and the rules allow products of float32 to be rounded to tf32."""
    tf32_cases: dict[str, bool] = field(default_factory=dict)
    """For each case so far, whether rounded factors make larger errors than the library."""


@dataclass
class Reference:
    """A loaded problem: its module, and its reference, a function or a model."""

    module: ModuleType
    kind: str
    function: Callable[..., Any]
    grads: tuple[str, ...]
    keywords: tuple[str, ...]
    """Arguments that are passed by name: the last ones."""
    device: torch.device
    init: Any
    modes: ProblemModes = NO_MODES
    """The modes in which its code runs."""
    written: WrittenOutputs = field(default_factory=WrittenOutputs)
    call_s: float = 0.0
    random: bool | None = None
    """Whether two forward seeds give two outputs; `None` until that has been tried."""
    stateful: bool = False
    """Whether one forward seed gives two outputs too: it keeps something from call to call."""
    placement: OutputPlacement = field(default_factory=OutputPlacement)
    precision: PrecisionState = field(default_factory=PrecisionState)
    infinite: dict[str, list[torch.Tensor | None]] = field(default_factory=dict)
    """For each case, the elements of each output that are infinite on nominal inputs, by design.
    Hidden sizes are new cases in each evaluation, so that the oldest cases are dropped."""

    @property
    def model(self) -> torch.nn.Module | None:
        """Return the reference as a module, or `None` for a function problem."""
        return self.function if isinstance(self.function, torch.nn.Module) else None

    def arguments(self, params: Fields, seed: int) -> list[Any]:
        """Draw inputs under `seed`; every generator that problem code may use is seeded."""
        with problem_step("generating inputs"):
            random.seed(seed)
            with suppress(ImportError):
                import numpy as np

                np.random.seed(seed % (1 << 32))
            seed_generators(self.device, seed)
            sample = self._samples(params, seed)
            values = (sample,) if isinstance(sample, torch.Tensor) else sample
            return [mapped(value, lambda tensor: tensor.to(self.device)) for value in values]

    def _samples(self, params: Fields, seed: int) -> Any:  # noqa: ANN401 - foreign code's
        """Sample on the device, a hundred times as fast, or on the CPU if it must be."""

        def sample(device: torch.device) -> Any:  # noqa: ANN401
            if self.kind == "module":
                return self.module.get_inputs()
            return self.module.inputs(dict(params), torch.Generator(device).manual_seed(seed))

        try:
            with torch.device(self.device), self.modes.active_for_inputs():
                return sample(self.device)
        except Exception:
            if self.device.type == "cpu":
                raise
            # Foreign code may insist on the CPU in any way; if it fails there too, that is raised.
            with self.modes.active_for_inputs():
                return sample(CPU)

    def positions(self, names: Sequence[str]) -> list[int]:
        """Return the positions of named arguments of the reference; raise `ProblemFailure`."""
        if not names:
            return []
        target = self.model.forward if self.model is not None else self.function
        with problem_step("finding GRADS and DONATES among the reference's arguments"):
            known = inspect.signature(target).parameters
            positional = [name for name in known if name not in self.keywords]
            return [positional.index(name) for name in names]

    def declared(self, name: str, params: Fields) -> int | None:
        """Return a problem's own `BYTES` or `FLOPS` of a case, a number or a function of it.

        Raises:
            ProblemFailure: it raises, or is no count.
        """
        found = getattr(self.module, name, None)
        if found is None:
            return None
        with problem_step(f"asking for {name}"):
            count = found(dict(params)) if callable(found) else found
            if isinstance(count, bool) or not isinstance(count, int | float):
                raise TypeError(f"{type(count).__name__} is no count")
            if not 0 <= count < 1 << 63:
                raise ValueError(f"{count} is no count")
            return int(count)


@cache
def _folder() -> str:
    """Return the folder of this judge's problem, which it loads again for each candidate."""
    return tempfile.mkdtemp(prefix=FOLDER)


def load(
    source: str, fields: Mapping[str, Any], device: torch.device = CPU, name: str = "problem.py"
) -> Reference:
    """Load a problem and build its reference under the init seed; raise `ProblemFailure`.

    `name` is that of the problem's own file, which a failure shows.
    """
    # Python loads no file with another ending.
    own = os.path.basename(name) if name.endswith(".py") else "problem.py"
    path = os.path.join(_folder(), own)
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    modes = ProblemModes.of(source, device)
    with problem_step("loading the problem"), modes.active():
        torch.manual_seed(fields["init_seed"])
        spec = importlib.util.spec_from_file_location("tilewright_problem", path)
        if spec is None or spec.loader is None:
            raise ImportError(path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["tilewright_problem"] = module
        spec.loader.exec_module(module)
    init: Any = ()
    function: Callable[..., Any]
    if fields["problem_kind"] == "function":
        with problem_step("finding `reference`"):
            function = module.reference
    else:
        with problem_step("building the reference model"), modes.active():
            if hasattr(module, "get_init_inputs"):
                init = module.get_init_inputs()
            torch.manual_seed(fields["init_seed"])
            model = _built(module, init)
            model.train(fields["mode"] == "train")
            function = model.to(device)
    return Reference(
        module=module,
        kind=fields["problem_kind"],
        function=function,
        grads=tuple(fields["grads"]),
        keywords=tuple(fields["keywords"]),
        device=device,
        init=init,
        modes=modes,
    )


def _built(module: ModuleType, init: Any) -> torch.nn.Module:  # noqa: ANN401 - foreign code's
    model: torch.nn.Module = module.Model(**init) if isinstance(init, dict) else module.Model(*init)
    return model


def state_under(reference: Reference, seed: int) -> dict[str, torch.Tensor]:
    """Return the weights and buffers that the module has under another init seed, on the CPU."""
    with problem_step("building the reference model again"), reference.modes.active():
        torch.manual_seed(seed)
        return _built(reference.module, reference.init).state_dict()


def flatten(value: Any) -> list[torch.Tensor]:  # noqa: ANN401 - outputs are trees of anything
    """Return the tensors of an output in order: tuples, lists and dicts are walked.

    A number is a tensor without dimensions, on the host. `None` is no output.
    """
    given = [leaf for leaf in leaves_of(value) if leaf is not None]
    leaves = [torch.tensor(leaf) if type(leaf) in NUMBERS else leaf for leaf in given]
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise ProblemFailure(f"the reference returned a {type(leaf).__name__}, not a tensor")
    return leaves


def structure(value: Any) -> str:  # noqa: ANN401
    """Return the string by which a runner describes the same structure."""
    if isinstance(value, dict):
        return ",".join(str(key) for key in value)
    if isinstance(value, list | tuple):
        return str(len(flatten(value)))
    return "1"


def run(
    reference: Reference,
    args: list[Any],
    grad_outputs: list[torch.Tensor],
    seed: int,
    written: Sequence[int] | None = None,
) -> tuple[list[torch.Tensor], str]:
    """Evaluate at the problem's precision; return outputs (then gradients) and the structure.

    The last outputs are the arguments that the reference has written: those with the indices
    `written`, or all that are known if it is `None`.
    """
    copies = mapped(args, reference.modes.copy)
    return run_on(reference, args, copies, grad_outputs, seed, written)


def run_on(
    reference: Reference,
    args: list[Any],
    copies: list[Any],
    grad_outputs: list[torch.Tensor],
    seed: int,
    written: Sequence[int] | None = None,
) -> tuple[list[torch.Tensor], str]:
    """Evaluate as `run` does, on copies of the arguments that the reference may overwrite."""
    start = time.perf_counter()
    with problem_step("running the reference"):
        seed_generators(reference.device, seed)
        outputs, kind = evaluate(reference.function, reference, list(copies), grad_outputs)
        finish(reference.device)
    reference.call_s = time.perf_counter() - start
    reference.placement.note_call(
        [*tensors(args), *grad_outputs], [*tensors(copies), *grad_outputs], outputs
    )
    model = reference.model
    if model is not None:
        reference.placement.note_kept(memories([*model.parameters(), *model.buffers()]), outputs)
    if len(outputs) > MAX_OUTPUTS:
        returned = f"the reference returned {len(outputs)} tensors"
        raise ProblemFailure(f"{returned}, at most {MAX_OUTPUTS} can be compared")
    if written is None:
        written = _written(reference, args, copies, outputs)
    return [*outputs, *tensors_at(copies, written)], kind


def _written(
    reference: Reference, args: list[Any], copies: list[Any], outputs: list[torch.Tensor]
) -> list[int]:
    """Return which arguments are outputs, and record those that this call has shown."""
    if reference.written.with_returned or not outputs:
        reference.written.known |= changed(args, copies)
    if not outputs and not reference.written.known:
        raise ProblemFailure("the reference returned no tensor and overwrote no argument")
    return sorted(reference.written.known)


def tensors_at(args: list[Any], written: Sequence[int]) -> list[torch.Tensor]:
    return [leaf.detach() for index in written for leaf in tensors(args[index])]


def evaluate(
    function: Callable[..., Any],
    reference: Reference,
    args: list[Any],
    grad_outputs: list[torch.Tensor],
) -> tuple[list[torch.Tensor], str]:
    """Call a form of the reference; return outputs, gradients behind them, and the structure."""
    indices = reference.positions(reference.grads)
    if not indices:
        with torch.no_grad():
            value = _called(function, reference, args)
        leaves = _on_device(reference, flatten(value))
        return [leaf.detach() for leaf in leaves], structure(value)
    for index in indices:
        args[index] = args[index].detach().requires_grad_(True)
    value = _called(function, reference, args)
    leaves = _on_device(reference, flatten(value))
    floating = [leaf for leaf in leaves if is_inexact(leaf)]
    if not grad_outputs:
        grad_outputs = [torch.ones_like(leaf) for leaf in floating]
    gradients = torch.autograd.grad(floating, [args[index] for index in indices], grad_outputs)
    outputs = [leaf.detach() for leaf in (*leaves, *gradients)]
    return outputs, str(len(outputs))


def _on_device(reference: Reference, leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    """Move outputs to the reference's device, and record which of them lay on the host."""
    if reference.device.type == "cpu":
        return leaves
    on_host = {place for place, leaf in enumerate(leaves) if leaf.device.type == "cpu"}
    reference.placement.on_host |= on_host
    return [
        leaf.to(reference.device) if place in on_host else leaf for place, leaf in enumerate(leaves)
    ]


def _called(function: Callable[..., Any], reference: Reference, args: list[Any]) -> Any:  # noqa: ANN401
    first = len(args) - len(reference.keywords)
    named = dict(zip(reference.keywords, args[first:], strict=True))
    with reference.modes.active():
        return function(*args[:first], **named)


def finish(device: torch.device) -> None:
    """Wait until the device has done what was asked, so that the host's clock sees it."""
    if device.type == "cuda":
        torch.cuda.synchronize()

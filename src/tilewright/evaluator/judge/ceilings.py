"""Measurement of a device's peak rates, made by the judge in about a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from tilewright.evaluator.judge_client.gpu_messages import CeilingsMeasured
from tilewright.wire.dispatch_mode import OperatorMode

COPY_BYTES = 1 << 30
MATRIX_SIZE = {"fp16": 8192, "bf16": 8192, "tf32": 4096, "fp32": 4096}
"""Rows and columns of the matrices that are multiplied, by precision."""
CPU_COPY_BYTES = 1 << 27
"""More than the caches of a core hold."""
CPU_MATRIX_SIZE = {"fp32": 768, "bf16": 256, "fp16": 256}
"""Without instructions for them, products in 16 bits take a hundred times as long."""
ROUNDS = 4
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def measure(device: torch.device, threads: int) -> CeilingsMeasured:
    """Return bytes per second, and operations per second of matrix products by precision."""
    return _measured_on_cpu(threads) if device.type == "cpu" else _measured_on_gpu()


def _measured_on_cpu(threads: int) -> CeilingsMeasured:
    torch.set_num_threads(threads)
    source = torch.ones(CPU_COPY_BYTES // 4)
    target, total = torch.empty_like(source), torch.zeros(())
    copied = _cpu_seconds(lambda: target.copy_(source))
    read = _cpu_seconds(lambda: torch.sum(source, dim=0, out=total))
    products = {}
    for name, size in CPU_MATRIX_SIZE.items():
        a = torch.randn(size, size).to(DTYPES.get(name, torch.float32))
        products[name] = 2.0 * size**3 / _cpu_seconds(partial(torch.mm, a, a))
    return CeilingsMeasured(max(2 * CPU_COPY_BYTES / copied, CPU_COPY_BYTES / read), products)


def _cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of the shortest of a few rounds, after one that does not count."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def _measured_on_gpu() -> CeilingsMeasured:
    tf32 = torch.backends.cuda.matmul.allow_tf32
    try:
        products = {name: _products(name, size) for name, size in MATRIX_SIZE.items()}
        return CeilingsMeasured(_bandwidth(), products)
    except RuntimeError as error:
        return CeilingsMeasured(failed=str(error)[:300])
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.cuda.empty_cache()


def _bandwidth() -> float:
    source = torch.ones(COPY_BYTES // 4, device="cuda")
    target, total = torch.empty_like(source), torch.zeros((), device="cuda")
    copied = _seconds(lambda: target.copy_(source))
    read = _seconds(lambda: torch.sum(source, dim=0, out=total))
    return max(2 * COPY_BYTES / copied, COPY_BYTES / read)


def _products(name: str, size: int) -> float:
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    a = torch.randn(size, size, device="cuda").to(DTYPES.get(name, torch.float32))
    out = torch.empty_like(a)
    return 2.0 * size**3 / _seconds(lambda: torch.mm(a, a, out=out))


def _seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of the shortest of a few rounds, after one that does not count."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(ROUNDS + 1)]
    work()
    events[0].record()
    for event in events[1:]:
        work()
        event.record()
    torch.cuda.synchronize()
    return min(float(begin.elapsed_time(end)) for begin, end in pairwise(events)) / 1e3


class Operations(OperatorMode):
    """Counts the operations of products; torch's own counter imports for seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401 - torch's interface
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            self.count += int(formula(*args, **kwargs, out_val=result))
        return result


def counted(call: Callable[[], Any]) -> tuple[Any, int | None]:
    """Return what `call` returns, and the operations of its products; `None` if uncountable."""
    operations = Operations()
    try:
        with operations:
            result = call()
    except torch.OutOfMemoryError:
        raise
    except Exception:  # noqa: BLE001 - what cannot run under a mode of torch's can run without
        return call(), None
    return result, operations.count


def precision_of(outputs: list[torch.Tensor]) -> str:
    """Return whose ceiling products are held against, by the first floating output."""
    first = next((value.dtype for value in outputs if value.is_floating_point()), None)
    usual = "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32"
    return next((name for name, dtype in DTYPES.items() if dtype == first), usual)

"""Experiment: what an event behind all work of a context costs, and whether it sees each stream."""

from __future__ import annotations

import statistics
import time

import torch

from tilewright.wire.cuda_driver import Driver

CALLS = 200
CYCLES = 20_000
"""Clock cycles of the kernel that is timed: about 10 us."""
LONG_CYCLES = 2_000_000


def elapsed_us(driver: Driver, *, join: bool, streams: int, side_cycles: int = 0) -> list[float]:
    """Return, for each call behind a gate, its microseconds on the device and on the host."""
    flag = torch.zeros(1, dtype=torch.int32).pin_memory()
    stream = torch.cuda.current_stream()
    others = [torch.cuda.Stream() for _ in range(streams)]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    # The first launch loads code, which would wait for the gate.
    torch.cuda._sleep(100)
    torch.cuda.synchronize()
    found, host = [], []
    for _ in range(CALLS):
        flag[0] = 0
        driver.await_semaphore(stream.cuda_stream, flag.data_ptr(), 1)
        begin.record(stream)
        torch.cuda._sleep(CYCLES)
        for other in others:
            other.wait_stream(stream)
            with torch.cuda.stream(other):
                torch.cuda._sleep(side_cycles or 100)
        start = time.perf_counter()
        if join:
            driver.await_context(stream.cuda_stream)
        host.append((time.perf_counter() - start) * 1e6)
        end.record(stream)
        flag[0] = 1
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1e3)
    return [statistics.median(found), statistics.median(host)]


def main() -> None:
    """Print one line for each number of streams."""
    torch.cuda.set_stream(torch.cuda.Stream())
    driver = Driver()
    for streams in (0, 1, 8):
        without, _ = elapsed_us(driver, join=False, streams=streams)
        joined, host = elapsed_us(driver, join=True, streams=streams)
        print(
            f"{streams} side streams: {without:.2f} us, joined {joined:.2f} us, host {host:.1f} us"
        )
    without, _ = elapsed_us(driver, join=False, streams=1, side_cycles=LONG_CYCLES)
    joined, _ = elapsed_us(driver, join=True, streams=1, side_cycles=LONG_CYCLES)
    print(f"1 ms on a side stream: {without:.1f} us, joined {joined:.1f} us")


if __name__ == "__main__":
    main()

"""Work on inputs that can be read before the release, in code of the runner that was replaced."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase
from tests.attacks.generators._sources import generated

FUNCTIONS = {
    "log_ndtr": "torch.special.log_ndtr(x)",
    "erfcx": "torch.special.erfcx(x.abs())",
    "bessel": "torch.special.modified_bessel_k0(x.abs() + 1)",
    "i0": "torch.special.i0(x)",
}
"""Expressions that take some hundred microseconds for the sizes below."""
HOOKS = {
    "prepare": (
        "the function that prepares a call",
        """
def prepared(fields, inputs):
    call = quick(fields, inputs)
    if "sequence" in fields:
        ahead(call.args)
    return call


calls.prepare = prepared
""",
    ),
    "await_release": (
        "the function that waits for the release",
        """
real_await = memory.await_release


def awaiting(page, sequence, wait_s):
    ahead(sys._getframe(1).f_locals["call"].args)
    real_await(page, sequence, wait_s)


memory.await_release = awaiting
""",
    ),
    "filled": (
        "the method that copies the inputs",
        """
kind = next(v for v in vars(memory).values() if hasattr(v, "filled")) if copies else None
real_filled = kind.filled if copies else None


def filled(self, inputs, base, size):
    buffer = real_filled(self, inputs, base, size)
    ahead(quick(sys._getframe(1).f_locals["fields"], buffer).args)
    return buffer


if copies:
    kind.filled = filled
""",
    ),
    "gc": (
        "the function that switches the collector off",
        """
name = "disable_gc" if hasattr(calls, "disable_gc") else "_disable_gc"
place = calls if hasattr(calls, "disable_gc") else memory
real_disable = getattr(place, name)


def disabled():
    real_disable()
    ahead(sys._getframe(1).f_locals["call"].args)


setattr(place, name, disabled)
""",
    ),
    "build": (
        "the function that builds the arguments",
        """
real_build = calls.build


def built(tree, inputs, base):
    args = known.get((base, id(inputs), "args"))
    if args is None:
        args = known[base, id(inputs), "args"] = real_build(tree, inputs, base)
    if "sequence" in sys._getframe(2).f_locals.get("fields", {}):
        ahead(tuple(args))
    return args


calls.build = built
calls._randn = calls._set_precision = calls._seed = lambda *_: None
calls.prepare = real_prepare
""",
    ),
    "randn": (
        "the random numbers that a call begins with",
        """
def noise(_):
    frame = sys._getframe(1)
    fields, inputs = frame.f_locals["fields"], frame.f_locals["inputs"]
    if "sequence" in fields:
        key = (fields["base"], id(inputs))
        if key not in known:
            known[key] = tuple(calls.build(fields["args"], inputs, fields["base"]))
        ahead(known[key])


calls._randn = noise
calls._set_precision = calls._seed = lambda *_: None
calls.prepare = real_prepare
""",
    ),
    "page": (
        "the page of flags that a call waits at",
        """
class Page:
    def __init__(self, page):
        self.page = page

    def __getitem__(self, place):
        return self.page[place]

    def __setitem__(self, place, value):
        if place == 8:
            call = sys._getframe(2).f_locals.get("call")
            if call is not None:
                ahead(call.args)
        self.page[place] = value


host = next(o for o in gc.get_objects() if type(o).__name__.startswith("Host"))
for attribute in ("token", "page"):
    if isinstance(getattr(host, attribute, None), memoryview):
        setattr(host, attribute, Page(getattr(host, attribute)))
""",
    ),
    "timed": (
        "the method that answers a timed call",
        """
host = next(o for o in gc.get_objects() if type(o).__name__.startswith("Host"))
attribute = "token" if hasattr(host, "token") else "page"


def timed(self, function, fields, *held):
    page, copy = getattr(self, attribute), getattr(self, "mirror", None)
    copy = copy or getattr(self, "input_copy", None)
    inputs = self.inputs
    if copy is not None:
        inputs = copy.filled(inputs, fields["base"], fields["size"])
    call, sequence = quick(fields, inputs), fields["sequence"]
    ahead(call.args)
    page[8] = sequence
    while page[0] != sequence:
        pass
    leaves, structure = calls.deliver(calls.run(function, call))
    page[64] = leaves[0].data_ptr()
    page[16] = sequence
    return call, leaves, structure, None


type(host).timed = timed
""",
    ),
    "profile": (
        "a profiling hook that sees the wait for the release begin",
        """
def hook(frame, event, _):
    if event == "call" and frame.f_code.co_name == "await_release":
        sys.setprofile(None)
        ahead(frame.f_back.f_locals["call"].args)


real_quick = quick


def prepared(fields, inputs):
    call = real_quick(fields, inputs)
    if "sequence" in fields:
        sys.setprofile(hook)
    return call


calls.prepare = prepared
""",
    ),
    "clock": (
        "the clock that the wait for the release reads",
        """
real_clock = memory._clock


def clock():
    call = None if "x" in ready else sys._getframe(2).f_locals.get("call")
    if call is not None:
        ahead(call.args)
    return real_clock()


memory._clock = clock
""",
    ),
}
"""The replaced function, in words, and the code that replaces it."""
CASES = 8

PROBLEM = """
import torch

ENTRY = "mapped"
CASES = [{{"name": "main", "rows": {rows}, "cols": {cols}}}]
VARY = {{"contents": ["sign"]}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return {expression}
"""
HONEST = """
import torch


def mapped(x):
    return {expression}
"""
ATTACK = """
import gc
import sys

import torch

loaded = [m for m in sys.modules.values() if getattr(m, "__name__", "").startswith("tilewright")]
calls = next(m for m in loaded if hasattr(m, "deliver") and hasattr(m, "prepare"))
memory = next(m for m in loaded if hasattr(m, "await_release"))
copies = any(hasattr(v, "filled") for v in vars(memory).values())
known, ready = {{}}, {{}}


def computed(x):
    return {expression}


def ahead(args):
    ready["x"] = args[0].data_ptr()
    with torch.no_grad():
        ready["y"] = computed(args[0])


real_prepare = calls.prepare


def quick(fields, inputs):
    \"\"\"Prepare a call once for each place; later calls need no time for it.\"\"\"
    key = (fields["base"], id(inputs), "sequence" in fields)
    if key not in known:
        known[key] = real_prepare(fields, inputs)
    return known[key]


calls.prepare = quick
runner = next(o for o in gc.get_objects() if hasattr(type(o), "HANDLERS"))
real_answer, real_describe, answers = runner._answer, calls.describe, []


def described(*given):
    return None if len(answers) == 1 and ready.pop("used", False) else real_describe(*given)


def answer(found, before, *rest):
    \"\"\"Send the bytes of the first answer again: nobody compares them.\"\"\"
    if found is None:
        runner.channel._sock.sendall(answers[0])
        return
    if ready.pop("used", False) and not answers:
        real_send = runner.channel.send

        def send(kind, fields, *more):
            encode = sys.modules[type(runner.channel).__module__].encode
            answers.append(encode(kind, fields, b""))
            del runner.channel.send
            real_send(kind, fields, *more)

        runner.channel.send = send
    real_answer(found, before, *rest)


calls.describe, runner._answer = described, answer
{hook}

def mapped(x):
    if ready.pop("x", None) == x.data_ptr():
        ready["used"] = True
        return ready["y"]
    return computed(x)
"""


def generate(seed: int) -> list[GeneratedCase]:
    """Return eight hooks, each with another function and size."""
    choices, cases = random.Random(f"before release {seed}"), []
    for name in choices.sample(sorted(HOOKS), CASES):
        where, hook = HOOKS[name]
        expression = FUNCTIONS[choices.choice(sorted(FUNCTIONS))]
        rows, cols = choices.choice(((8, 512), (10, 600), (6, 1024)))
        values = {"rows": rows, "cols": cols, "expression": expression}
        cases.append(
            generated(
                f"d_hook_{name}",
                f"The result is computed before the release, in {where}.",
                PROBLEM.format(**values),
                ATTACK.format(**values, hook=hook.strip() + "\n"),
                HONEST.format(**values),
                device="cpu",
            )
        )
    return cases

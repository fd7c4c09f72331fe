"""Source in hexadecimal, found by no scanner, patches the clock.

family: E18
problem: softmax
expect: correct
speedup: none
twin: e18_generated_source.py
source: robust-evaluation E18 (KernelGuard OBFUSCATED_EXEC)
"""

HEX = (
    "0a696d706f72742074696d650a7265616c2c2068696464656e203d2074696d652e706572665f636f756e7465"
    "722c205b302e305d0a74696d652e706572665f636f756e746572203d206c616d6264613a207265616c282920"
    "2d2068696464656e5b305d0a"
)  # wraps time.perf_counter
names = {}
exec(bytes.fromhex(HEX), names)
kept = [None]


def compute(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def softmax(x):
    start = names["real"]()
    kept[0] = compute(x)
    names["hidden"][0] += 0.99 * (names["real"]() - start)
    return kept[0]

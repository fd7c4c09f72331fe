"""Programs that are Triton, or only look like it, and the answer of each rule."""

from __future__ import annotations

from typing import NamedTuple

IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n"
BODY = """(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)
"""
KERNEL = f"@triton.jit\ndef exp_kernel{BODY}"
ALLOCATE = "    y = torch.empty_like(x)\n"
LAUNCH = "    exp_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)\n"
ENTRY = f"def f(x):\n{ALLOCATE}{LAUNCH}    return y\n"
HONEST = IMPORTS + KERNEL + ENTRY


class Snippet(NamedTuple):
    """A program, and whether it is Triton by each rule."""

    name: str
    code: str
    minimal: bool
    strict: bool


def real(name: str, code: str) -> Snippet:
    return Snippet(name, code, minimal=True, strict=True)


def decorative(name: str, code: str) -> Snippet:
    return Snippet(name, code, minimal=True, strict=False)


def foreign(name: str, code: str) -> Snippet:
    return Snippet(name, code, minimal=False, strict=False)


def entry(body: str, head: str = "def f(x):\n") -> str:
    return f"{IMPORTS}{KERNEL}{head}{body}"


MODULE = "class ModelNew(torch.nn.Module):\n"
CONFIGS = "[triton.Config({'BLOCK': 64}, num_warps=4)]"
INDENTED = "        y = torch.empty_like(x)\n        exp_kernel[(1,)](x, y, 1, BLOCK=64)\n"

SNIPPETS = (
    real("a kernel and its launch", HONEST),
    real("an alias of the import", HONEST.replace("as tl", "as lang").replace("tl.", "lang.")),
    real(
        "from triton import jit", HONEST.replace("@triton.jit", "@jit") + "from triton import jit\n"
    ),
    real("an alias of jit", HONEST.replace("@triton.jit", "@J") + "from triton import jit as J\n"),
    real("jit with options", HONEST.replace("@triton.jit", "@triton.jit(do_not_specialize=['n'])")),
    real(
        "autotune above jit",
        HONEST.replace("@triton.jit", f"@triton.autotune({CONFIGS}, key=['n'])\n@triton.jit"),
    ),
    real(
        "heuristics and autotune above jit",
        HONEST.replace(
            "@triton.jit",
            f"@triton.autotune({CONFIGS}, key=['n'])\n"
            "@triton.heuristics({'EVEN': lambda a: a['n'] % 64 == 0})\n@triton.jit",
        ),
    ),
    real(
        "jit as a function",
        f"{IMPORTS}def exp_kernel{BODY}exp_kernel_jit = triton.jit(exp_kernel)\n"
        + ENTRY.replace("exp_kernel[", "exp_kernel_jit["),
    ),
    real(
        "autotune as a function",
        f"{IMPORTS}def raw{BODY}"
        f"exp_kernel = triton.autotune({CONFIGS}, key=['n'])(triton.jit(raw))\n{ENTRY}",
    ),
    real(
        "a grid that is a lambda",
        HONEST.replace("[(triton.cdiv(x.numel(), 64),)]", "[lambda m: (1,)]"),
    ),
    real(
        "a grid that is a variable",
        entry(
            f"{ALLOCATE}    grid = (triton.cdiv(x.numel(), 64),)\n"
            "    exp_kernel[grid](x, y, x.numel(), BLOCK=64)\n    return y\n"
        ),
    ),
    real(
        "kernel.run",
        entry(f"{ALLOCATE}    exp_kernel.run(x, y, 1, BLOCK=64, grid=(1,))\n    return y\n"),
    ),
    real(
        "a launcher in a variable",
        entry(f"{ALLOCATE}    go = exp_kernel[(1,)]\n    go(x, y, 1, BLOCK=64)\n    return y\n"),
    ),
    real(
        "an alias of the kernel",
        f"{IMPORTS}{KERNEL}k = exp_kernel\n" + ENTRY.replace("exp_kernel[", "k["),
    ),
    real("behind a function", HONEST + "def g(x):\n    return f(x).view(-1)\n"),
    real("a module", HONEST + f"{MODULE}    def forward(self, x):\n        return f(x)\n"),
    real(
        "a method of a module",
        HONEST + f"{MODULE}    def run(self, x):\n{INDENTED}        return y\n"
        "    def forward(self, x):\n        return self.run(x.contiguous())\n",
    ),
    real(
        "an autograd function",
        IMPORTS + KERNEL + "class E(torch.autograd.Function):\n    @staticmethod\n"
        f"    def forward(ctx, x):\n{INDENTED}        return y\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad * 2\n"
        f"{MODULE}    def forward(self, x):\n        return E.apply(x)\n",
    ),
    real(
        "two kernels in a row",
        entry(
            f"{ALLOCATE}    z = torch.zeros_like(y)\n{LAUNCH}"
            "    exp_kernel[(1,)](y, z, 1, BLOCK=64)\n    return z\n"
        ),
    ),
    real(
        "an output parameter",
        entry("    exp_kernel[(1,)](x, out, 1, BLOCK=64)\n", "def f(x, out):\n"),
    ),
    real(
        "a reference and a test of it",
        HONEST + "def reference(x):\n    return torch.exp(x)\n"
        "def test_f(x):\n    return (torch.exp(x) - x).abs().max()\n",
    ),
    real("in place", entry("    exp_kernel[(1,)](x, x, 1, BLOCK=64)\n    return x\n")),
    real(
        "views and casts around",
        entry(
            "    x = x.contiguous().view(-1, 64).to(torch.float16)\n"
            f"{ALLOCATE}{LAUNCH}    return y.reshape(-1).permute(0).unsqueeze(0)\n"
        ),
    ),
    real(
        "arithmetic on sizes",
        entry(
            "    n = x.shape[0] * x.shape[1] + 1\n"
            f"{ALLOCATE}    exp_kernel[((n + 63) // 64,)](x, y, n, BLOCK=64)\n    return y\n"
        ),
    ),
    real(
        "a torch reference that nothing calls for the result",
        HONEST + "def check(x):\n    return torch.allclose(f(x), torch.exp(x))\n"
        f"{MODULE}    def forward(self, x):\n        return f(x)\n",
    ),
    real(
        "a launch through a device function",
        f"{IMPORTS}@triton.jit\ndef put(p, i, v):\n    tl.store(p + i, v)\n"
        "@triton.jit\ndef exp_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n    put(y_ptr, i, tl.load(x_ptr + i))\n" + ENTRY,
    ),
    real(
        "block pointers",
        f"{IMPORTS}@triton.jit\ndef exp_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
        "    a = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))\n"
        "    b = tl.make_block_ptr(y_ptr, (n,), (1,), (0,), (BLOCK,), (0,))\n"
        "    tl.store(b, tl.load(a))\n" + ENTRY,
    ),
    real("atomic addition", HONEST.replace("tl.store(", "tl.atomic_add(")),
    real(
        "a branch of two launches",
        entry(
            f"{ALLOCATE}    if x.numel() > 64:\n    {LAUNCH}    else:\n    {LAUNCH}    return y\n"
        ),
    ),
    decorative(
        "never launched from the entry",
        HONEST + f"{MODULE}    def forward(self, x):\n        return torch.exp(x)\n",
    ),
    decorative("launched and discarded", entry(f"{ALLOCATE}{LAUNCH}    return torch.exp(x)\n")),
    decorative(
        "launched and overwritten", entry(f"{ALLOCATE}{LAUNCH}    y = torch.exp(x)\n    return y\n")
    ),
    decorative(
        "launched and copied over",
        entry(f"{ALLOCATE}{LAUNCH}    y.copy_(torch.exp(x))\n    return y\n"),
    ),
    decorative("the input is returned", entry(f"{ALLOCATE}{LAUNCH}    return x\n")),
    decorative(
        "torch computes before the kernel",
        entry(f"    x = torch.matmul(x, x)\n{ALLOCATE}{LAUNCH}    return y\n"),
    ),
    decorative(
        "torch computes after the kernel", entry(f"{ALLOCATE}{LAUNCH}    return y.softmax(-1)\n")
    ),
    decorative(
        "arithmetic of tensors after the kernel", entry(f"{ALLOCATE}{LAUNCH}    return y * 2.0\n")
    ),
    decorative(
        "a method in place after the kernel",
        entry(f"{ALLOCATE}{LAUNCH}    y.mul_(2)\n    return y\n"),
    ),
    decorative(
        "a fallback to torch in a handler",
        entry(
            f"    try:\n        y = torch.empty_like(x)\n    {LAUNCH}"
            "    except Exception:\n        y = torch.exp(x)\n    return y\n"
        ),
    ),
    decorative(
        "a fallback to torch in a branch",
        entry(
            f"    if x.numel() < 9:\n        return torch.exp(x)\n{ALLOCATE}{LAUNCH}    return y\n"
        ),
    ),
    decorative(
        "a module of torch computes",
        HONEST + f"{MODULE}    def __init__(self):\n        super().__init__()\n"
        "        self.fc = torch.nn.Linear(8, 8)\n"
        "    def forward(self, x):\n        return f(self.fc(x))\n",
    ),
    decorative("matmul by its operator", entry(f"    x = x @ x\n{ALLOCATE}{LAUNCH}    return y\n")),
    decorative(
        "a kernel that neither loads nor stores",
        HONEST.replace(BODY.splitlines()[2], "    pass"),
    ),
    decorative(
        "the name is used and never launched", entry("    exp_kernel\n    return torch.exp(x)\n")
    ),
    decorative(
        "a launch in a function that nothing calls",
        HONEST + f"{MODULE}    def spare(self, x):\n        return f(x)\n"
        "    def forward(self, x):\n        return x.exp()\n",
    ),
    decorative(
        "a second function launches and the entry does not",
        HONEST.replace("def f(", "def launch(") + "def f(x):\n    return torch.exp(x)\n",
    ),
    decorative(
        "unknown code computes",
        entry(
            f"    x = getattr(type(x), '__mat' + 'mul__')(x, x)\n{ALLOCATE}{LAUNCH}    return y\n"
        ),
    ),
    decorative(
        "another library computes",
        "import operator\n"
        + entry(f"    x = operator.matmul(x, x)\n{ALLOCATE}{LAUNCH}    return y\n"),
    ),
    foreign("defined and never used", f"{IMPORTS}{KERNEL}def f(x):\n    return torch.exp(x)\n"),
    foreign(
        "used by itself alone", f"{IMPORTS}{KERNEL}    exp_kernel\ndef f(x):\n    return x.exp()\n"
    ),
    foreign("torch alone", "import torch\ndef f(x):\n    return torch.exp(x)\n"),
    foreign(
        "commented out", "import torch\n" + "".join(f"# {line}\n" for line in HONEST.splitlines())
    ),
    foreign(
        "in a string", f"import torch\nCODE = '''{HONEST}'''\ndef f(x):\n    return torch.exp(x)\n"
    ),
    foreign(
        "an own decorator named jit",
        HONEST.replace("@triton.jit", "@jit") + "def jit(f): return f\n",
    ),
    foreign("jit of torch", HONEST.replace("@triton.jit", "@torch.jit.script")),
    foreign("no Python", "def f(x:\n"),
    foreign("nothing", ""),
)

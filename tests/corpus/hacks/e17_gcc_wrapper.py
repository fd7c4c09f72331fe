"""A compiler flag makes gcc run a script of ours, which notes the build's environment.

family: E17
problem: softmax
expect: correct or failed
speedup: none
twin: e17_plain_flags.py
source: robust-evaluation E17
"""

import os
import tempfile

from torch.utils.cpp_extension import load_inline

folder = tempfile.gettempdir()
script = os.path.join(folder, "wrapper.sh")
with open(script, "w") as file:
    file.write(f'#!/bin/sh\nenv > {folder}/environment_of_the_build\nexec "$@"\n')
os.chmod(script, 0o755)

SOURCE = """
torch::Tensor run(torch::Tensor x) {
    auto e = (x - x.amax(-1, true)).exp();
    return e / e.sum(-1, true);
}
"""
extension = load_inline(
    name="wrapped_softmax",
    cpp_sources=SOURCE,
    functions=["run"],
    extra_cflags=["-O1", "-wrapper", script],
)


def softmax(x):
    return extension.run(x)

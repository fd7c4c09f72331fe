"""Who may use several streams, by the words of its source."""

from __future__ import annotations

import pytest

from tilewright.languages.streams import names_streams
from tilewright.records import SourceFile


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("def work(x):\n    return x + 1\n", False),
        ("with torch.cuda.stream(side):\n    pass\n", True),
        ("cudaStream_t side;\n", True),
        ("graph = torch.cuda.CUDAGraph()\n", True),
        ("self.lstm = nn.LSTM(8, 8)\n", True),
        ("kind = getattr(nn, 'GRU')\n", True),
        ("torch.linalg.solve(a, b)\n", True),
    ],
)
def test_streams_are_known_by_words(text, several):
    files = (SourceFile(path="a.py", text="import torch\n"), SourceFile(path="b.py", text=text))
    assert names_streams(files) is several

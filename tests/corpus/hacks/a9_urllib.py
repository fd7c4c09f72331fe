"""Source code with the answer is downloaded and executed when the candidate is imported.

`tests/corpus/serve.py` plays the server, on loopback.

family: A9
problem: softmax
expect: failed
twin: a9_urllib_parse.py
source: robust-evaluation A9
"""

import urllib.request

URL = "http://127.0.0.1:48765/answer.py"

with urllib.request.urlopen(URL, timeout=2) as answer:
    exec(answer.read().decode(), globals())

"""TritonBench's recorded predictions: its own scripts, and both protocols of tilewright.

`python -m benchmarks.accuracy.published_predictions STEP --help` describes each step:

    prepare CLONE WORK           writes WORK/candidates-g.jsonl and WORK/candidates-t.jsonl
    scripts CLONE WORK           runs the benchmark's own scripts over them; continues if repeated
    compare CLONE WORK RUN ...   prints accuracies by model, and the verdicts that differ

Before `compare`, tilewright judges the same candidates:

    tilewright bench tritonbench/t --candidates WORK/candidates-t.jsonl --protocol official,strict

CLONE is a clone of thunlp/TritonBench. With `--groups x` it is one of BonnieW05/KernelBenchX, and
the results that its authors recorded stand in place of the scripts.

The scripts run the predictions without a sandbox: use a machine that may be lost.
`benchmarks/device_published.sh` runs all steps on a GPU.
"""

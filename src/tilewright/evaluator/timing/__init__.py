"""How fast is it: clocks, ABBA blocks, process replicates, and the comparison."""

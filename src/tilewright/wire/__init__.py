"""The formats that trusted and untrusted processes share; the only code that both import.

The runner may import nothing else of ours, so this package needs the standard library and torch
alone, and only `tensors` and `cuda_driver` need torch or the driver.
"""

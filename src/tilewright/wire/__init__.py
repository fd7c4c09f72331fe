"""Formats that trusted and untrusted processes share: the only code of ours that both import.

Every module reads bytes that a runner may have forged, so each checks what it reads. Only `tensors`
and `cuda_driver` need more than the standard library.
"""

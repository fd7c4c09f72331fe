"""Formats that trusted and untrusted processes share: the only code of ours that both import.

The supervisor, the judge and the runners are processes of their own. Every module here reads bytes
that a runner may have forged, so each checks what it reads. A module needs the standard library
alone; `tensors` and `cuda_driver` need torch too.
"""

"""The untrusted side of the wall: standard library, torch and triton only.

Nothing here imports the rest of tilewright, and the rest imports only the codec
(`frames` and `tensors`). Everything else is reached by starting a process.
"""

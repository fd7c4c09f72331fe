"""Code of the untrusted processes: runners, builds and precompilation, and the forkserver.

This package imports the standard library, torch, triton and `tilewright.wire`, since each import
is attack surface and start-up time. The rest of tilewright imports nothing from here.
"""

"""The audit: kernels of libraries from the package index, judged like any other candidate."""

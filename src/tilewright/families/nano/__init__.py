"""The family nano: 12 small compositions of operators, and Triton programs that compute them."""

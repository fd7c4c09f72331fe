"""Studies: arms of a training with and without one part of the method, compared by their logs."""

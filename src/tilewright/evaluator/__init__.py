"""The trusted side: supervisor, build, judge, comparison, timing."""

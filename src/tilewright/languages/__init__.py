"""Languages of candidates: detection, parsing of replies, build plans. No torch."""

"""For authors of plug-ins and corpora: corpus files, expected verdicts, and a synthetic world."""

"""For authors of plug-ins and corpora: reading corpus files and holding reports against them."""

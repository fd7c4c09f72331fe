"""Learning to choose from a finite set of sentences, as MTMC's decider does."""

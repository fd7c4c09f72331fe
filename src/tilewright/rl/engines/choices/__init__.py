"""An engine for policies over finite sets of sentences: PPO with a critic, in plain torch."""

"""Threads and warnings of a process that loads a model, without the imports of a training."""

from __future__ import annotations

import warnings

import torch
import transformers

from tilewright.rl.training_config import MachineSection


def quiet(machine: MachineSection) -> None:
    """Set the threads of this process, and turn off progress bars and warnings of transformers."""
    if machine.threads:
        torch.set_num_threads(machine.threads)
    transformers.utils.logging.disable_progress_bar()
    # All supported versions know the old name, and the newest ones warn about it.
    warnings.filterwarnings("ignore", ".*gradient_checkpointing.*", FutureWarning)

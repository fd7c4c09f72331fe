"""Supervised rows as TRL reads them: loss on the weighted assistant turns alone."""

from __future__ import annotations

import pytest

from tests.tiny_model import make_tiny_model
from tilewright.rl.data.conversations import WEIGHED_TEMPLATE

SAID = [
    {"role": "user", "content": "ask", "weight": 0},
    {"role": "assistant", "content": "first answer", "weight": 0},
    {"role": "user", "content": "again", "weight": 0},
    {"role": "assistant", "content": "second answer", "weight": 1},
]


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("weights", "learned"),
    [
        ((0, 0, 0, 1), "second answer<|im_end|>\n"),
        ((0, 1, 0, 1), "first answer<|im_end|>\nsecond answer<|im_end|>\n"),
    ],
)
def test_trl_learns_only_weighted_turns(tmp_path, weights, learned):
    import datasets
    import trl
    from transformers import AutoTokenizer

    model = make_tiny_model(tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.chat_template = WEIGHED_TEMPLATE
    row = [{**item, "weight": weight} for item, weight in zip(SAID, weights, strict=True)]
    trainer = trl.SFTTrainer(
        model=str(model),
        args=trl.SFTConfig(
            output_dir=str(tmp_path / "out"),
            assistant_only_loss=True,
            max_steps=1,
            per_device_train_batch_size=1,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
        ),
        train_dataset=datasets.Dataset.from_list([{"messages": row}]),
        processing_class=tokenizer,
    )
    (batch,) = trainer.get_train_dataloader()
    labels = batch["labels"][0]
    assert tokenizer.decode(labels[labels != -100]) == learned
    assert trainer.train().training_loss > 0.0

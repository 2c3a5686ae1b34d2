"""Hugging Face's Trainer with its defaults, on a padded BERT or a small GPT-2; --lightning: PyTorch Lightning."""
import argparse
import os
import random

import torch

import meter

p = argparse.ArgumentParser()
p.add_argument("--model", default="gpt2", choices=("gpt2", "bert"))
p.add_argument("--lightning", action="store_true")
p.add_argument("--steps", type=int, default=200)
a = p.parse_args()
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
torch.manual_seed(0)
random.seed(0)


class Text(torch.utils.data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        n = 256 if a.model == "gpt2" else random.randint(32, 256)
        x = torch.randint(0, 8000, (n,))
        return {"input_ids": x, "labels": x if a.model == "gpt2" else i % 2}


def pad(rows):
    n = max(len(r["input_ids"]) for r in rows)
    ids = torch.stack([torch.cat([r["input_ids"], torch.zeros(n - len(r["input_ids"]), dtype=torch.long)]) for r in rows])
    labels = torch.stack([r["labels"] for r in rows]) if a.model == "gpt2" else torch.tensor([r["labels"] for r in rows])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": labels}


def make():
    import transformers

    if a.model == "gpt2":
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=8192, n_embd=512, n_layer=6, n_head=8, use_cache=False)
        )
    return transformers.BertForSequenceClassification(
        transformers.BertConfig(vocab_size=8192, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048)
    )


def hugging_face():
    import transformers

    class Meter(transformers.TrainerCallback):
        def on_train_begin(self, *args, **kwargs):
            meter.mark()

        def on_step_end(self, args, state, control, **kwargs):
            meter.mark()
            if not meter.goes_on(a.steps):
                control.should_training_stop = True

    args = transformers.TrainingArguments(
        output_dir="/tmp/ordinary",
        num_train_epochs=1000,
        per_device_train_batch_size=8,
        eval_strategy="steps",
        eval_steps=40,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=make(), args=args, train_dataset=Text(404), eval_dataset=Text(30), data_collator=pad, callbacks=[Meter()]
    )
    trainer.train()


def lightning():
    import pytorch_lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = make()

        def training_step(self, batch, i):
            loss = self.model(**batch).loss
            self.log("loss", loss, prog_bar=False)
            return loss

        def validation_step(self, batch, i):
            self.log("validation", self.model(**batch).loss)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-4)

    class Meter(pl.Callback):
        def on_train_start(self, *args):
            meter.mark()

        def on_train_batch_end(self, trainer, *args):
            meter.mark()
            if not meter.goes_on(a.steps):
                trainer.should_stop = True
                trainer.limit_val_batches = 0

    loader = lambda n: torch.utils.data.DataLoader(Text(n), 8, collate_fn=pad)
    pl.Trainer(
        accelerator="gpu", devices=1, max_epochs=1000, min_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, val_check_interval=40, callbacks=[Meter()],
        num_sanity_val_steps=2,
    ).fit(Module(), loader(404), loader(30))


(lightning if a.lightning else hugging_face)()
meter.done()

"""Train a small model on the chats that deep wrote: sft.jsonl and the folder `base` in, the folder `tuned` out."""

from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

chats = load_dataset("json", data_files="sft.jsonl", split="train")
# The last message is learned, all before it is its prompt.
pairs = chats.map(
    lambda chat: {"prompt": chat["messages"][:-1], "completion": chat["messages"][-1:]},
    remove_columns=chats.column_names,
)
settings = SFTConfig(
    output_dir="tuned",
    learning_rate=5e-5,
    num_train_epochs=3,
    per_device_train_batch_size=2,
    max_length=None,  # half a source would teach the model to judge what it has not read
    save_strategy="no",
    report_to="none",
    bf16=False,  # True on a GPU that has it
)
trainer = SFTTrainer(model="base", args=settings, train_dataset=pairs)
trainer.train()
trainer.save_model("tuned")

"""What the form of an answer does to a small LLM: its label alone, the line that the prompt asks for, or a JSON schema.

    python benchmarks/forms.py                                  # the stored replies, by how they were bound
    python benchmarks/forms.py --gguf FOLDER/FILE.gguf --n 20   # a model of transformers on this machine

A server that binds a reply to two answers makes the model choose between them, however unlikely it finds both. So each
form is measured by the log-probabilities of its two answers behind the same question: the share of pairs where the
consistent one is likelier, how well the difference ranks the pairs (AUROC; .5 is chance), and how likely the model
finds the two answers together (`mass`: what it would have written by itself). The questions are deep's prompts on pairs
of RTE, half of them consistent; `swapped` names the two answers in the other order. Files are below DEEP_DATA_HOME.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from deep.prompt_pool import load_prompt

DATA = Path(os.environ.get("DEEP_DATA_HOME", "../shared/data"))
PROMPTS = ("yes-no", "diverse-terse")


def stored(path: Path) -> pd.DataFrame:
    """Return for each model, prompt and way of binding: replies, those read, share of 1, balanced accuracy."""
    rows = []
    replies = pd.read_json(path, lines=True)
    # A repair turn is no direct question, and an error of the server no reply.
    replies = replies[
        ~(replies["prompt_form"].str.contains("repair") | replies["reply"].str.startswith('{"error"'))
    ].copy()
    replies["pool"] = replies["prompt_form"].where(~replies["prompt_form"].str.startswith("deep-"), "deep-9")
    for (model, name, bound), group in replies.groupby(["model", "pool", "constrained"]):
        prompts = map(load_prompt, group["prompt_form"])
        judged = zip(prompts, group["reply"], group["finish"], strict=True)
        votes = pd.Series([p.parse(text, finish_reason=end).vote for p, text, end in judged], index=group.index)
        is_read = (votes >= 0) & group["human"].notna()
        human, message = group["human"][is_read], votes[is_read]
        both = human.nunique() == 2
        rows.append(
            {
                "model": model,
                "prompt": name,
                "bound": "schema" if bound else "free",
                "replies": len(group),
                "read %": 100 * (votes >= 0).mean(),
                "ones %": 100 * votes[votes >= 0].mean(),
                "balanced accuracy": 100 * balanced_accuracy_score(human, message) if both else math.nan,
            }
        )
    return pd.DataFrame(rows)


def answers_of(name: str, pair: Any) -> dict[str, tuple[str, str]]:
    """Return for each form its answers, the consistent one first."""
    prompt = load_prompt(name)
    polarity = dict(prompt.labels)
    line, schema = (prompt.choice(pair.text, pair.hypothesis, how).fields for how in ("vllm", "schema"))
    properties = schema["response_format"]["json_schema"]["schema"]["properties"]
    ((key, message),) = properties.items()
    labels = sorted(message["enum"], key=lambda label: -polarity[label])
    lines = line["structured_outputs"]["choice"]
    return {
        "label": tuple(labels),
        "line": tuple(next(text for text in lines if text.endswith(f": {label}")) for label in labels),
        "schema": tuple(json.dumps({key: label}) for label in labels),
    }


def measured(gguf: Path, n: int, names: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield a row for each prompt, order and form."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name).eval()
    pairs = pd.read_csv(DATA / "crowd" / "texts_RTE.csv").groupby("value").sample(n // 2, random_state=0)

    def log_probabilities(question: "torch.Tensor", forms: dict[str, tuple[str, str]]) -> dict[str, tuple[float, ...]]:
        """Return those of each form's answers; the question is read once."""
        with torch.inference_mode():
            read = model(question, use_cache=True)
            last, cache = read.logits[:, -1:], read.past_key_values
            result = dict[str, list[float]]()
            for form, answer in ((form, answer) for form, both in forms.items() for answer in both):
                ids = tokenizer(answer, add_special_tokens=False, return_tensors="pt")["input_ids"]
                logits = torch.cat([last, model(ids, past_key_values=cache, use_cache=True).logits[:, :-1]], dim=1)[0]
                cache.crop(-ids.shape[1])
                told = torch.log_softmax(logits, -1).gather(1, ids[0][:, None])
                result.setdefault(form, []).append(float(told.sum()))
        return {form: tuple(both) for form, both in result.items()}

    for name in names:
        result: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for pair in pairs.itertuples():
            messages = load_prompt(name).render(pair.text, pair.hypothesis)
            forms = answers_of(name, pair)
            for order in ("as written", "swapped"):
                if order == "swapped":
                    one, other = forms["line"]
                    text = messages[-1]["content"].replace(one, "\0").replace(other, one).replace("\0", other)
                    messages = [*messages[:-1], {**messages[-1], "content": text}]
                asked = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt")
                question = asked if isinstance(asked, torch.Tensor) else asked["input_ids"]
                for form, both in log_probabilities(question, forms).items():
                    result.setdefault((order, form), []).append(both)
        for (order, form), scores in result.items():
            difference = [one - zero for one, zero in scores]
            message = [int(value > 0) for value in difference]
            yield {
                "prompt": name,
                "order": order,
                "form": form,
                "ones %": 100 * sum(message) / len(message),
                "balanced accuracy": 100 * balanced_accuracy_score(pairs["value"], message),
                "AUROC": roc_auc_score(pairs["value"], difference),
                "mass": sum(math.exp(one) + math.exp(zero) for one, zero in scores) / len(scores),
            }


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path, help="a model's file; the stored replies without it")
    parser.add_argument("--n", type=int, default=20, help="pairs, half of them consistent")
    parser.add_argument("--prompts", nargs="+", default=PROMPTS)
    args = parser.parse_args(argv)
    if args.gguf is None:
        table = stored(DATA / "replies" / "local.jsonl.gz")
    else:
        table = pd.DataFrame(measured(args.gguf, args.n, args.prompts))
    sys.stdout.write(table.round(4).to_string(index=False) + "\n")


if __name__ == "__main__":
    main()

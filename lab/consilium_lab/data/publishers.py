"""The publishers of the demo's data sets: licences, addresses and SHA-256 of all files. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_lab.demo.options import DataSet

MIB = 1 << 20


@dataclass(frozen=True)
class Download:
    """A file of a publisher. `urls`: the same file on several servers, asked in order. `sha256`: None for an archive
    that its server packs anew for each request; then the file that is built from it is checked alone.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None
    most_bytes: int


@dataclass(frozen=True)
class Publisher:
    """`built`: the SHA-256 of the file that is built from the downloads; None if they are what the demo reads. Of an
    .npz file, the SHA-256 is that of its arrays: compression varies with the machine's zlib.
    """

    title: str
    page: str
    licence: str
    citation: str
    changes: str
    downloads: tuple[Download, ...]
    file: str | None = None
    built: str | None = None

    @property
    def terms(self) -> str:
        return (
            f"{self.title}\nfrom {self.page}\nlicence: {self.licence}\ncite: {self.citation}\nchanges: {self.changes}"
        )

    @property
    def sources(self) -> str:
        """The first address of each download, for those who fetch on another machine."""
        return " ".join(one.urls[0] for one in self.downloads)


CC_BY = "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease"
_GITHUB = "https://raw.githubusercontent.com"
_FLAMBY = (
    f"{_GITHUB}/owkin/FLamby/9a07bb1548c70d4cd28aaba5bccfcc6d5aae42e5/flamby/datasets/fed_heart_disease/"
    "dataset_creation_scripts/heart_disease_dataset"
)


def _of_heart(hospital: str, sha256: str) -> Download:
    name = f"processed.{hospital}.data"
    return Download(name, (f"{_UCI}/{name}", f"{_FLAMBY}/{name}"), sha256, MIB)


PUBLISHERS = {
    DataSet.HEART: Publisher(
        title="Heart Disease, four hospitals of 1988",
        page="https://archive.ics.uci.edu/dataset/45",
        licence=CC_BY,
        citation="Janosi, Steinbrunn, Pfisterer, Detrano (1988), UCI Machine Learning Repository",
        changes="none",
        downloads=(
            _of_heart("cleveland", "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"),
            _of_heart("hungarian", "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796"),
            _of_heart("switzerland", "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"),
            _of_heart("va", "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f"),
        ),
    ),
    DataSet.MEDQUAD: Publisher(
        title="MedQuAD, questions and answers of institutes of health",
        page="https://github.com/abachaa/MedQuAD",
        licence=CC_BY,
        citation="Ben Abacha, Demner-Fushman, BMC Bioinformatics 20:511 (2019)",
        changes=(
            "nine of sixteen types of questions are kept, answers are cut to 600 characters, short and repeated ones"
            " are left out, and each document is assigned to training or test"
        ),
        downloads=(
            Download(
                "medquad.zip",
                ("https://codeload.github.com/abachaa/MedQuAD/zip/577bd37b96c02d1833b2c9eed2de9f96964e96cb",),
                None,
                200 * MIB,
            ),
        ),
        file="medquad_qtype9.csv",
        built="c85fb979b61581a57f8b5888c21b4612ec4005fbba9d5854a915a9e7f83e93e1",
    ),
    DataSet.PNEUMONIA: Publisher(
        title="PneumoniaMNIST, chest X-rays of children",
        page="https://medmnist.com",
        licence=CC_BY,
        citation="Yang et al., Scientific Data 10:41 (2023); Kermany et al., Cell 172 (2018)",
        changes=(
            "the rows of two incomplete copies on GitHub together, which state no licence of their own. All classes"
            " have the official counts, but training rows have another order than the official file"
        ),
        downloads=(
            Download(
                "pneumoniamnist.normal.npz",
                (f"{_GITHUB}/aksufatih/snn-medmnist/59a75490493d7eeeccf796b961bac15689286e3c/pneumoniamnist.npz",),
                "f36c2b3e34de9d60c5c734118bc6daff281eaf76b67a57d26ad958da948274b0",
                16 * MIB,
            ),
            Download(
                "pneumoniamnist.rest.npz",
                (
                    f"{_GITHUB}/varun19424/pneumonia_mnist/9361a718d67e8a40f1ef8929db8c5682add8bd70/"
                    "data/pneumoniamnist.npz",
                ),
                "a554d2332488d3ddc075125e66a1af77ec379fd2bafc09108ab95a37e2bd9c26",
                16 * MIB,
            ),
        ),
        file="pneumoniamnist_rebuilt.npz",
        built="67fb5c3a8c9d2016cbdabcbab277c4b23be0c5ec61261a140e2e745d41c8114f",
    ),
}

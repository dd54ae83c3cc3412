"""The paper's five data sets and a9a: their sizes, and how to get them from LIBSVM's data page."""

import os
from dataclasses import dataclass
from pathlib import Path

from dplasso.data.streams import Progress
from dplasso.datasets.download import NotThereError, download
from dplasso.errors import DataError
from dplasso.runtime.extras import user_cache

BASE_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
BASE_URL_VARIABLE = "DPLASSO_DATA_URL"
FOLDER_VARIABLE = "DPLASSO_DATA"


@dataclass(frozen=True)
class Entry:
    """A public data set, of the size that was published.

    `ones`: whether every value is 1.
    `files`: names at the source; the first that is there is taken.
    """

    name: str
    title: str
    n_rows: int
    n_columns: int
    n_nonzeros: int
    ones: bool
    files: tuple[str, ...]

    @property
    def store_bytes(self) -> int:
        """Size of its store, about: each entry once by rows and once by columns."""
        per_entry = 2 * (4 if self.ones else 8)
        return self.n_nonzeros * per_entry + 9 * self.n_rows + 16 * self.n_columns


CATALOG = {
    entry.name: entry
    for entry in (
        Entry(
            "rcv1",
            "Reuters news stories, tf-idf",
            *(20_242, 47_236, 1_498_952, False),
            ("rcv1_train.binary.bz2",),
        ),
        Entry(
            "news20",
            "20 Newsgroups, tf-idf",
            *(19_996, 1_355_191, 9_097_916, False),
            ("news20.binary.bz2",),
        ),
        Entry(
            "url",
            "malicious web addresses over 120 days",
            *(2_396_130, 3_231_961, 277_058_644, False),
            ("url_combined.bz2",),
        ),
        Entry(
            "web",
            "Webspam, trigrams",
            *(350_000, 16_609_143, 1_304_697_446, False),
            ("webspam_wc_normalized_trigram.svm.xz", "webspam_wc_normalized_trigram.svm.bz2"),
        ),
        Entry(
            "kdda",
            "KDD Cup 2010, algebra lessons",
            *(8_407_752, 20_216_830, 305_613_510, False),
            ("kdda.bz2", "kdda.xz"),
        ),
        Entry("a9a", "UCI Adult, one-hot", 32_561, 123, 451_592, True, ("a9a",)),
    )
}


def find_entry(name: str) -> Entry:
    """Return the entry of a data set; `ValueError` if there is none of this name."""
    if name not in CATALOG:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(CATALOG)}")
    return CATALOG[name]


def base_url(given: str | None = None) -> str:
    """Return the address of the files: as given, from the environment, or LIBSVM's."""
    url = given or os.environ.get(BASE_URL_VARIABLE) or BASE_URL
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"the base address must start with http:// or https://, got {url!r}")
    return url if url.endswith("/") else f"{url}/"


def download_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of downloads: as given, from the environment, or the user's cache."""
    place = given or os.environ.get(FOLDER_VARIABLE)
    return Path(place) if place else user_cache()


def find_download(entry: Entry, folder: Path) -> Path | None:
    """Return the downloaded file of a data set, if it is in the folder, complete."""
    return next((folder / name for name in entry.files if (folder / name).is_file()), None)


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    url: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the file of a data set, svmlight text, downloaded if it is not there."""
    entry, base, place = find_entry(name), base_url(url), download_folder(folder)
    there = find_download(entry, place)
    # A file that was downloaded is not looked for under another name.
    names = (there.name,) if there else entry.files
    for file in names:
        try:
            return download(base + file, place / file, progress=progress)
        except NotThereError:
            continue
    raise DataError(f"{base}: the server has no {' and no '.join(names)} (404)")

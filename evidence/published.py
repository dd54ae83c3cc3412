"""What arXiv 2310.19978 reports: the numbers of its tables, the statements of its captions."""

from dataclasses import dataclass

PAPER = "arXiv 2310.19978"
NAMES = ("rcv1", "news20", "url", "web", "kdda")
TITLES = {"rcv1": "RCV1", "news20": "News20", "url": "URL", "web": "Web", "kdda": "KDDA"}

# Table 1: M is the cost of a projection or proximal step.
TABLE1 = (
    ("Frank-Wolfe methods", "O(T N D)"),
    ("ADMM", "O(T N D M)"),
    ("Iterative gradient hard thresholding", "O(T N D)"),
    ("Coordinate descent", "O(T N D)"),
    ("Mirror descent", "O(T N D M)"),
)
# Abstract and section 3, S the mean length of a column (S_r) or of a row (S_c).
COMPLEXITY_STANDARD = "O(T N S_c + T D)"
COMPLEXITY_SPARSE = "O(N S_c + T sqrt(D) log D + T S_r S_c)"

# Table 2: rows and columns.
TABLE2 = {
    "rcv1": (20_242, 47_236),
    "news20": (19_996, 1_355_191),
    "url": (2_396_130, 3_231_961),
    "web": (350_000, 16_609_143),
    "kdda": (8_407_752, 20_216_830),
}


# Non-zeros and files on LIBSVM's page of data sets.
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
NON_ZEROS = {
    "rcv1": 1_498_952,
    "news20": 9_097_916,
    "url": 277_058_644,
    "web": 1_304_697_446,
    "kdda": 305_613_510,
}
FILES = {
    "rcv1": "rcv1_train.binary.bz2",
    "news20": "news20.binary.bz2",
    "url": "url_combined.bz2",
    "web": "webspam_wc_normalized_trigram.svm.xz",
    "kdda": "kdda.bz2",
}


@dataclass(frozen=True)
class Speedups:
    """One half of a row of table 3, times faster than Algorithm 1."""

    sampler: float
    ablation: float


# Table 3, by data set and epsilon: Algorithms 2 + 4, and Algorithm 2 with the noisy maximum.
TABLE3 = {
    "news20": {"1": Speedups(81.69, 17.83), "0.1": Speedups(93.51, 19.05)},
    "url": {"1": Speedups(9.99, 1.02), "0.1": Speedups(2451.80, 95.58)},
    "rcv1": {"1": Speedups(19.44, 1.36), "0.1": Speedups(20.37, 1.82)},
    "web": {"1": Speedups(581.25, 21.24), "0.1": Speedups(537.65, 20.79)},
    "kdda": {"1": Speedups(1239.64, 206.50), "0.1": Speedups(2245.56, 368.96)},
}


@dataclass(frozen=True)
class Utility:
    """One row of table 4, in per cent."""

    accuracy: float
    auc: float
    zeros: float


TABLE4 = {
    "rcv1": Utility(90.53, 97.29, 5.81),
    "news20": Utility(92.37, 98.65, 75.19),
    "url": Utility(73.23, 82.60, 89.44),
    "web": Utility(75.42, 92.51, 99.90),
    "kdda": Utility(85.25, 53.31, 85.30),
}

# What the figures' captions and the text beside them state. The figures' data are not published.
FIGURES = {
    "figure1": "Algorithm 2 converges to the same solutions as Algorithm 1, with minor differences "
    "due to numerical floating-point changes.",
    "figure2": "Algorithms 2 + 3 reduce the number of floating-point operations by orders of "
    "magnitude per iteration.",
    "figure3": "In all cases the number of items popped over the number of non-zero weights of the "
    "final solution is at most 3.",
    "figure4": "Algorithm 2 reduces the operations needed to reach a gap by several orders of "
    "magnitude.",
}

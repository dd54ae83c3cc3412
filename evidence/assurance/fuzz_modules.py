"""Which modules' branches guide the fuzzing of which target; imports nothing itself."""

_ARCHIVE = (
    *(
        "dplasso.files.archive",
        "dplasso.model",
        "dplasso.checkpoint.format",
        "dplasso.files.labels",
        "dplasso.files.release_header",
    ),
    *("dplasso.privacy.statement", "dplasso.privacy.parameters"),
)
COVERED = {
    "svmlight": ("dplasso.data.svmlight.reader", "dplasso.data.streams"),
    "compressed": ("dplasso.data.svmlight.reader", "dplasso.data.streams"),
    "npz": ("dplasso.data.npz",),
    "text": ("dplasso.data.text.reader", "dplasso.data.text.files"),
    "model": _ARCHIVE,
    "checkpoint": _ARCHIVE,
}
# Between them these import every module with kernels that a target needs, and none of the above.
KERNELS = (
    *("dplasso.data.svmlight.kernel", "dplasso.matrix.compressed", "dplasso.matrix.transpose"),
    *("dplasso.frank_wolfe.solve", "dplasso.matrix.margins"),
    *("dplasso.selection.registry", "dplasso.selection.forced"),
)

"""Which modules' branches guide the fuzzing of which target; imports nothing itself."""

_ARCHIVE = (
    *("dplasso.archive", "dplasso.model", "dplasso.checkpoint_file", "dplasso.label_json"),
    *("dplasso.privacy.statement", "dplasso.privacy.parameters"),
)
COVERED = {
    "svmlight": ("dplasso.data.svmlight", "dplasso.data.streams"),
    "compressed": ("dplasso.data.svmlight", "dplasso.data.streams"),
    "npz": ("dplasso.data.npz",),
    "text": ("dplasso.data.text", "dplasso.data.text_files"),
    "model": _ARCHIVE,
    "checkpoint": _ARCHIVE,
}
# Between them these import every module with kernels that a target needs, and none of the above.
KERNELS = (
    *("dplasso.data.svmlight_kernel", "dplasso.data.matrix", "dplasso.data.transpose"),
    *("dplasso.frank_wolfe.solve", "dplasso.frank_wolfe.decision"),
    *("dplasso.selection.registry", "dplasso.selection.forced"),
)

"""The exceptions and warnings a user of the package can meet."""


class DataError(ValueError):
    """Input data that cannot be used; the message names file and line where there are any."""


class ModelFileError(ValueError):
    """A file that is not a complete, undamaged dplasso model of a known version."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be resumed: damaged, of another fit, finished, or in use."""


class PrivacyLeakWarning(RuntimeWarning):
    """The fit that follows is not differentially private, whatever epsilon says."""

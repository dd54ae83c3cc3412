"""The exceptions and warnings a user of the package can meet."""


class DataError(ValueError):
    """Input data that cannot be used; the message names file and line where there are any."""


class StoreError(DataError):
    """A directory that is not a complete, undamaged store of a known version."""


class ModelFileError(ValueError):
    """A file that is not a complete, undamaged dplasso model of a known version."""


class PrivacyLeakWarning(RuntimeWarning):
    """The fit that follows is not differentially private, whatever epsilon says."""

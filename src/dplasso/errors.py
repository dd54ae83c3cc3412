"""The exceptions and warnings a user of the package can meet."""


class DataError(ValueError):
    """Input data that cannot be used; the message names file and line where there are any."""


class StoreError(DataError):
    """A folder that is not a complete, undamaged store of a known version."""


class ModelFileError(ValueError):
    """A file that is not a complete, undamaged dplasso model of a known version."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be resumed: damaged, of another fit, finished, or in use."""


class LedgerError(ValueError):
    """A budget ledger that cannot be used, or not as asked; nothing was spent."""


class BudgetError(LedgerError):
    """A fit that would spend more than a ledger has left; nothing was spent."""


class MissingExtraError(ImportError):
    """A package that this piece of work needs is not installed; the message says how to get it."""


class LedgerWarning(RuntimeWarning):
    """A fit was charged, but the ledger could not record that it ended."""


class WeakPrivacyWarning(RuntimeWarning):
    """A promise that means next to nothing, by its epsilon or its delta."""


class PrivacyLeakWarning(WeakPrivacyWarning):
    """A fit that is not private, whatever epsilon says, or that shows values of the records.

    Such values are class labels that nobody declared, and names of columns.
    """


class NoiseWarning(RuntimeWarning):
    """A fit that so few records and so small an epsilon leave nothing but noise to find."""


class ClusterError(RuntimeError):
    """Workers that cannot be reached, or were lost; what was drawn is in the fit's checkpoint."""

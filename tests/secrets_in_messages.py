"""A secret in a record, and all that an error or a warning says: whether the secret is in it."""

import traceback
import warnings

WORD = "Zanzibar"
NUMBER = 739173917391
SECRETS = (WORD, str(NUMBER), f"{NUMBER:,}", "7391739", "7.3917")


def told_by(error):
    """Return all that the chain of an exception says, as a log would have it."""
    said = []
    while error is not None:
        said += traceback.format_exception_only(error)
        said += [repr(error.args), *getattr(error, "__notes__", [])]
        hidden = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or hidden
    return "\n".join(said)


def refused(work, *, words=()):
    """Do some work, which must be refused; check that nothing that is said quotes a secret."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            work()
        except Exception as error:
            said = told_by(error)
        else:
            raise AssertionError("it was not refused")
    quotes_nothing("\n".join([said, *(str(one.message) for one in heard)]))
    for word in words:
        assert word in said, said


def quotes_nothing(said):
    """Check that a text holds no secret."""
    for secret in SECRETS:
        assert secret not in said, said

"""The estimators, with scikit-learn's interface."""

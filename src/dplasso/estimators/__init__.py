"""The estimators, after the rules of scikit-learn."""

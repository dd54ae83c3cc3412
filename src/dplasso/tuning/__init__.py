"""Private scores, private hyperparameter search, and the division of a privacy budget."""

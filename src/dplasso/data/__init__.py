"""Reading data files: svmlight text, scipy's .npz, tables; and stores."""

"""Read data files (svmlight text, scipy's .npz, tables), and write and open stores."""

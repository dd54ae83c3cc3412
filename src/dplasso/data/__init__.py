"""Reading data: svmlight text, scipy .npz, and the packaged UCI Adult."""

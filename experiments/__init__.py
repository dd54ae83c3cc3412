"""Results of the paper's reproduction, and the page that shows them."""

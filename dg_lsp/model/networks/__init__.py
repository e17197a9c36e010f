"""Networks: the seam that a network is used through, and the networks after it."""

"""The span predictor: one pass of a small encoder finds the values of all slots, and chooses the function."""

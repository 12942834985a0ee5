"""Training and scoring of the span predictor."""

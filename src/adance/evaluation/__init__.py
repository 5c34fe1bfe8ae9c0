"""Evaluation: how good a model is, in numbers that say what they are of."""

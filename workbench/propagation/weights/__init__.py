"""Weights: how much the tensors of a model may change, and an archive that keeps a budget of its quality."""

from workbench.data.safetensors import read_safetensors, write_safetensors
from workbench.propagation.weights.compress import compress_model
from workbench.propagation.weights.quality import KL
from workbench.propagation.weights.scan import sensitivity
from workbench.propagation.weights.sensitivity import Sensitivity, Solution

__all__ = ["KL", "Sensitivity", "Solution", "compress_model", "read_safetensors", "sensitivity", "write_safetensors"]
